#include "cli/warmup_demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/show.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/workflows/first_launches.h"

namespace capstone::cli {
namespace {

using workflows::FirstLaunches;

constexpr double kWidest = 16;  // [columns] of the longest bar: the table fits into 80

// Bars on a logarithmic scale: a factor of ten is as long everywhere.
std::string bar(double us, double shortest, double longest) {
  const double share = longest > shortest ? std::log(us / shortest) / std::log(longest / shortest) : 0;
  std::string text;
  for (int i = 0; i < 1 + int(std::lround(share * kWidest)); ++i) text += "▇";
  return text;
}

void show_launches(const Context& context, const FirstLaunches& run) {
  const double steady = run.steady().host_us;
  const std::size_t pause = static_cast<std::size_t>(run.pause_after);
  std::vector<std::size_t> shown;
  for (std::size_t i : {0, 1, 2, 5, 10, 30, 100})
    if (i < pause) shown.push_back(i);
  for (std::size_t i : {pause - 1, pause, pause + 1, run.launches.size() - 1}) shown.push_back(i);
  double longest = steady, shortest = steady;
  for (std::size_t i : shown) {
    longest = std::max(longest, run.launches[i].host_us);
    shortest = std::min(shortest, run.launches[i].host_us);
  }
  Table table({"launch", "at", "host's clock", "GPU's events", "over warm", ""},
              {true, true, true, true, true, false});
  for (std::size_t i : shown) {
    const auto& launch = run.launches[i];
    table.row({i == pause ? fmt::format("{} after 2 s", i + 1) : std::to_string(i + 1),
               format_time_ms(launch.at_ms), format_time_ms(launch.host_us * 1e-3),
               format_time_ms(launch.event_us * 1e-3), fmt::format("{:.1f}x", launch.host_us / steady),
               bar(launch.host_us, shortest, longest)});
  }
  tell(context, table.text(context.terminal));
}

void show(const Context& context, const FirstLaunches& run) {
  const auto steady = run.steady();
  show_launches(context, run);
  const double first = run.launches.front().host_us;
  tell(context,
       fmt::format(
           "\nthe first launch: {}, of which {} go to the driver's context and memory; the kernel's code "
           "is loaded in what is left. Warm: {} by the host's clock, {} by events.",
           format_time_ms(first * 1e-3), format_time_ms(run.preparation_us * 1e-3),
           format_time_ms(steady.host_us * 1e-3), format_time_ms(steady.event_us * 1e-3)));
  double sum = 0;
  for (std::size_t i = 0; i < 10; ++i) sum += run.launches[i].host_us;
  tell(context,
       fmt::format("the mean of the first ten launches is {:.0f} times the warm time: that is what a "
                   "benchmark without warm-up reports.",
                   sum / 10 / steady.host_us));
}

}  // namespace

Result<void> warmup_demo(const Context& context, const DemoInputs& inputs) {
  std::filesystem::path record;
  if (!inputs.record.empty()) {
    CAPSTONE_TRY(record, path_of_record(context, inputs.record));
  }
  tell(context, "z = x + y over 2 million floats: the first launches of a process, one by one");
  const BackendChoice choice = choose_backend(Backend::kAuto, context.resources);
  if (choice.backend != Backend::kCuda) {
    tell(context,
         context.terminal.paint(Tone::kWarn, "not shown here: a GPU that warms up (" + choice.because + ")"));
    const auto recorded = workflows::recorded_first_launches(context.resources);
    if (recorded.empty()) {
      tell(context, "no run on a GPU is recorded: not measured");
      return {};
    }
    const FirstLaunches& run = recorded.front();
    tell(context, fmt::format("as recorded on an {}, {}:\n", run.device, run.time.substr(0, 10)));
    show(context, run);
    return {};
  }
  auto progress = [&](const workflows::Progress& step) { context.terminal.progress(step.text); };
  const auto run = workflows::run_first_launches(context, progress);
  context.terminal.end_progress();
  if (!run) return tl::unexpected(run.error());
  tell(context, "on an " + run->device + ":\n");
  show(context, *run);
  if (!record.empty()) return write_file_atomic(record, first_launches_json(*run).dump(1) + "\n");
  return {};
}

}  // namespace capstone::cli
