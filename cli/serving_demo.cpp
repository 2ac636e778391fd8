#include "cli/serving_demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/timing/device.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/serving.h"

namespace capstone::cli {
namespace {

using workflows::ServingBatch;
using workflows::ServingPhase;
using workflows::ServingRun;

constexpr double kLargestError = 0.05;  // of one attention output; values are averages of about unit numbers

std::string per_second(const ServingRun& run, const ServingBatch& batch) {
  if (run.emulated || batch.seconds <= 0) return "-";
  return fmt::format("{:.0f}", double(batch.tokens) / batch.seconds);
}

void show_batching(const Context& context, const std::vector<ServingRun>& runs) {
  Table table({"batching", "attention", "tokens/s", "steps", "tokens a step", "rows wasted"},
              {false, false, true, true, true, true});
  for (const ServingRun& run : runs)
    for (const ServingBatch& batch : run.batches)
      table.row({batch.batching, run.kernel, per_second(run, batch), std::to_string(batch.steps),
                 fmt::format("{:.1f}", double(batch.tokens) / double(std::max<std::int64_t>(1, batch.steps))),
                 fmt::format("{:.0f} %", 100 * double(batch.wasted_rows) /
                                             double(std::max<std::int64_t>(1, batch.answer_rows)))});
  tell(context, table.text(context.terminal));
}

// "81 % of 3.35 TB/s", or the rate alone where the data sheet is not known.
std::string rate_text(const ServingPhase& phase, const std::optional<DevicePeaks>& peaks) {
  const double rate = phase.bytes / (phase.ms * 1e-3);
  const std::string text = fmt::format("{:.0f} GB/s", rate / 1e9);
  return peaks && peaks->bandwidth > 0 ? fmt::format("{}, {:.0f} %", text, 100 * rate / peaks->bandwidth)
                                       : text;
}

// Where a step's time goes, and how near each phase is to the speed of memory.
void show_phases(const Context& context, const ServingRun& run, const ServingBatch& batch) {
  const auto peaks = find_device(run.device);
  Table table({"phase", "time a step", "share", "bytes a step", "speed of memory"},
              {false, true, true, true, true});
  const double steps = double(batch.timed_steps), step = batch.step_ms();
  const ServingPhase* longest = nullptr;
  for (const ServingPhase& phase : batch.phases) {
    if (!longest || phase.ms > longest->ms) longest = &phase;
    table.row({phase.name, run.emulated ? "-" : format_time_ms(phase.ms / steps),
               run.emulated ? "-" : fmt::format("{:.0f} %", 100 * phase.ms / steps / step),
               fmt::format("{:.2f} MB", phase.bytes / steps / 1e6),
               run.emulated ? "-" : rate_text(phase, peaks)});
  }
  tell(context, fmt::format("\na step of {} batching with {}:\n", batch.batching, run.kernel));
  tell(context, table.text(context.terminal));
  if (run.emulated || !longest) return;
  tell(context,
       fmt::format("\n{} takes {:.0f} % of a step. Every phase reads its weights, or the cache, once a step: "
                   "more rows in a step cost little until the arithmetic counts.",
                   longest->name, 100 * longest->ms / steps / step));
}

void show(const Context& context, const std::vector<ServingRun>& runs) {
  const ServingRun& first = runs.front();
  tell(context, fmt::format("{} requests of a real chat service, {} at a time; {}", first.requests,
                            first.places, first.model));
  show_batching(context, runs);
  for (const ServingRun& run : runs)
    if (!run.batches.empty()) show_phases(context, run, run.batches.back());
}

std::string where(const ServingRun& run) {
  return run.emulated ? "a toy model on the emulated backend: it shows what happens, not how fast"
                      : fmt::format("on an {}", run.device);
}

// The attention of every layer is compared with a plain kernel while it serves.
void warn_of_errors(const Context& context, const ServingRun& run) {
  if (run.attention_error <= kLargestError) return;
  tell(context,
       context.terminal.paint(Tone::kBad,
                              fmt::format("{} is wrong in the server: its outputs differ by up to {:g} from "
                                          "those of a plain kernel. Its times do not count.",
                                          run.kernel, run.attention_error)));
}

void show_recorded(const Context& context) {
  const auto recorded = workflows::recorded_serving(context.resources);
  if (recorded.empty()) {
    tell(context, "no run on a GPU is recorded: the times are not measured");
    return;
  }
  const ServingRun& run = recorded.front();
  tell(context,
       fmt::format("\nas recorded on an {}, {}, {}:", run.device, run.time.substr(0, 10), run.model));
  show_batching(context, {run});
  show_phases(context, run, run.batches.back());
}

Result<std::filesystem::path> wanted_kernel(const std::string& kernel) {
  constexpr std::string_view kPart = "attention=";
  if (kernel.empty()) return std::filesystem::path();
  if (!kernel.starts_with(kPart) || kernel.size() == kPart.size())
    return fail("--kernel wants attention=FILE, not " + kernel, {}, "--kernel attention=human/kernel.cu",
                ExitCode::kUsage);
  return std::filesystem::path(kernel.substr(kPart.size()));
}

}  // namespace

Result<void> serving_demo(const Context& context, const DemoInputs& inputs) {
  CAPSTONE_TRY(const std::filesystem::path kernel, wanted_kernel(inputs.kernel));
  std::filesystem::path record;
  if (!inputs.record.empty()) {
    CAPSTONE_TRY(record, output_path(context, inputs.record, workflows::Output::kDemo));
  }
  auto progress = [&](const workflows::Progress& step) { context.terminal.progress(step.text); };
  std::vector<ServingRun> runs;
  // The user's kernel first, so that a mistake in it shows before the reference kernel (an empty path) is
  // built.
  std::vector<std::filesystem::path> kernels;
  if (!kernel.empty()) kernels.push_back(kernel);
  kernels.emplace_back();
  for (const std::filesystem::path& attention : kernels) {
    auto run = workflows::run_serving({attention, Backend::kAuto}, context, progress);
    context.terminal.end_progress();
    if (!run) return tl::unexpected(run.error());
    runs.push_back(*std::move(run));
  }
  std::reverse(runs.begin(), runs.end());  // the reference kernel is shown first
  tell(context, where(runs.front()) + ":");
  show(context, runs);
  for (const ServingRun& run : runs) warn_of_errors(context, run);
  if (!record.empty()) CAPSTONE_CHECK(write_file_atomic(record, serving_json(runs.back()).dump(1) + "\n"));
  if (runs.front().emulated) show_recorded(context);
  return {};
}

}  // namespace capstone::cli
