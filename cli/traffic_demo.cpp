#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/workshop_demos.h"
#include "harness/base/text.h"
#include "harness/timing/device.h"

namespace capstone::cli {
namespace {

constexpr std::size_t kMostTiles = 12, kMostOfATile = 8;  // what a board has room for
constexpr double kLargestNumber = 1e6;
constexpr double kSameSum = 1e-12;  // relative

Error no_tiles(const std::string& why) {
  return {"--tiles: " + why,
          {},
          "--tiles '1,3;2,5': tiles between semicolons, numbers between commas",
          ExitCode::kUsage};
}

Result<double> number_of_tile(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(std::fabs(value) <= kLargestNumber))
    return fail(no_tiles(fmt::format("'{}' is not a number from {:.0f} to {:.0f}", to_utf8(text),
                                     -kLargestNumber, kLargestNumber)));
  return value;
}

Result<std::vector<std::vector<double>>> tiles_of(const std::string& text) {
  std::vector<std::vector<double>> tiles;
  for (const std::string& part : split(text, ';')) {
    if (trim(part).empty()) return fail(no_tiles(fmt::format("tile {} is empty", tiles.size() + 1)));
    std::vector<double> tile;
    for (const std::string& number : split(part, ',')) {
      CAPSTONE_TRY(const double value, number_of_tile(number));
      tile.push_back(value);
    }
    if (tile.size() > kMostOfATile)
      return fail(no_tiles(
          fmt::format("tile {} has {} numbers, at most {}", tiles.size() + 1, tile.size(), kMostOfATile)));
    tiles.push_back(std::move(tile));
  }
  if (tiles.size() > kMostTiles)
    return fail(no_tiles(fmt::format("{} tiles, at most {}", tiles.size(), kMostTiles)));
  return tiles;
}

std::string tile_text(const std::vector<double>& tile) {
  std::vector<std::string> numbers;
  for (double x : tile) numbers.push_back(fmt::format("{:g}", x));
  return "[" + join(numbers, ", ") + "]";
}

constexpr const char* kProblem = "attention";
const std::vector<std::string> kRungs{"01_three_kernels", "02_fp32_tiles", "05_two_consumers"};

// "640 kB", "10.7 GB": as the course says bytes.
std::string bytes_text(double bytes) {
  return bytes >= 1e9   ? fmt::format("{:.1f} GB", bytes / 1e9)
         : bytes >= 1e6 ? fmt::format("{:.0f} MB", bytes / 1e6)
                        : fmt::format("{:.0f} kB", bytes / 1e3);
}

std::string times_text(double bytes, double least) { return fmt::format("{:.3g}", bytes / least); }

std::string recorded_time(const std::optional<Ladder>& ladder, const std::string& rung) {
  if (ladder)
    for (const LadderStep& step : ladder->steps)
      if (step.rung.name == rung && step.timed()) return format_time_ms(step.ms.point);
  return "-";
}

// "attention<64>" of "attention<kDim>": a row has room for the name alone.
std::string kernel_name(const KernelCounts& kernel) {
  return kernel.kernel.substr(0, kernel.kernel.find('<'));
}

}  // namespace

Result<void> online_softmax_demo(const Context& context, const DemoInputs& inputs) {
  CAPSTONE_TRY(const auto tiles, tiles_of(inputs.tiles.empty() ? "1,3;2,5" : inputs.tiles));
  Table table({"tile", "largest so far", "the old sum times", "sum so far"});
  double most = -INFINITY, sum = 0;
  std::vector<double> all;
  for (const auto& tile : tiles) {
    const double before = most;
    for (double x : tile) most = std::max(most, x), all.push_back(x);
    const bool first = all.size() == tile.size();
    const double scale = first ? 0 : std::exp(before - most);
    sum *= scale;
    for (double x : tile) sum += std::exp(x - most);
    table.row({tile_text(tile), fmt::format("{:g}", most),
               first ? "-" : fmt::format("e^({:g} - {:g}) = {:.4f}", before, most, scale),
               fmt::format("{:.6f}", sum)});
  }
  double whole = 0;
  for (double x : all) whole += std::exp(x - most);
  tell(context, table.text(context.terminal));
  tell(context, fmt::format("\nthe whole row at once: largest {:g}, sum {:.6f}: {}", most, whole,
                            std::fabs(whole - sum) < kSameSum * whole ? "the same, and the row was read once"
                                                                      : "DIFFERENT"));
  return {};
}

Result<void> traffic_demo(const Context& context, const DemoInputs&) {
  CAPSTONE_TRY(const Problem problem, find_problem(context.resources.problems(), kProblem));
  const Sizes& small = problem.emulate;
  CAPSTONE_TRY(const Cost least, cost_at(problem, small));
  CAPSTONE_TRY(const Cost least_full, cost_at(problem, problem.measure));
  CAPSTONE_TRY(const auto ladder, recorded_ladder(context.resources, kProblem, problem.measure));
  tell(context, fmt::format("attention, {}: sectors that the warps touch, counted by the emulator before any "
                            "cache. 1 time: q, k, v and o once. Full size: {}, by a rule that larger runs "
                            "teach and test.\n",
                            to_string(small), to_string(problem.measure)));
  Table table({"rung", "kernel", "moved", "times", "full size", "times", "recorded"},
              {false, false, true, true, true, true, true});
  CAPSTONE_TRY(const auto counts, counted(context, kProblem, kRungs, small, true));
  for (std::size_t i = 0; i < kRungs.size(); ++i) {
    const Explanation& e = counts[i];
    const bool several = e.kernels.size() > 1;
    if (several)
      for (const KernelCounts& kernel : e.kernels)
        table.row({"", kernel_name(kernel), bytes_text(kernel.total().moved_bytes()),
                   times_text(kernel.total().moved_bytes(), least.bytes), "", "", ""});
    const bool grown = e.moved_at_measured > 0;
    table.row({context.terminal.paint(Tone::kBold, kRungs[i]),
               several ? "together" : kernel_name(e.kernels.front()), bytes_text(e.moved_bytes()),
               times_text(e.moved_bytes(), least.bytes), grown ? bytes_text(e.moved_at_measured) : "-",
               grown ? times_text(e.moved_at_measured, least_full.bytes) : "-",
               recorded_time(ladder, kRungs[i])});
  }
  tell(context, table.text(context.terminal));
  if (ladder) tell(context, "times: " + as_recorded(*ladder));
  const auto n = double(size_of(problem.measure, "n")), d = double(size_of(problem.measure, "d"));
  tell(context,
       fmt::format(
           "\nFLOPs counted: {:.1f} million in {}, {:.1f} million in {}. At full size a head has {} of "
           "scores, in fp32, and {} of k and v: what tiles read again comes from the L2 cache.",
           double(counts[0].total.flops) / 1e6, kRungs[0], double(counts[1].total.flops) / 1e6, kRungs[1],
           bytes_text(4 * n * n), bytes_text(2 * 2 * n * d)));
  tell(context,
       "`capstone demo flash-traffic` has another factor: it counts what device memory moves, with a perfect "
       "cache, by arithmetic.");
  return {};
}

}  // namespace capstone::cli
