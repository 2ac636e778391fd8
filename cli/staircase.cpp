#include "cli/staircase.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/text.h"

namespace capstone::cli {
namespace {

std::string percent(double value) { return value > 0 ? fmt::format("{:.1f} %", value) : "n/a"; }

std::string times(double value) { return value > 0 ? fmt::format("{:.3g}", value) : "-"; }

std::string staircase(const Ladder& ladder, const Terminal& t) {
  const bool timed = std::any_of(ladder.steps.begin(), ladder.steps.end(), [](const LadderStep& s) { return s.timed(); });
  const bool counted = std::any_of(ladder.steps.begin(), ladder.steps.end(), [](const LadderStep& s) { return s.counts.has_value(); });
  std::vector<std::string> header{"session", "rung", "gate one"};
  const bool compute = counts_flops(ladder);
  if (timed) {
    header.insert(header.end(), {"time", compute ? "TFLOP/s" : "GB/s", "of peak", "of a copy", "of the library", "over the last", ""});
    if (compute) header.erase(std::find(header.begin(), header.end(), "of a copy"));
  }
  if (counted) header.insert(header.end(), {"sectors", "wavefronts", "moved"});
  header.emplace_back("what is new");
  Table table(header);
  double slowest = 0, fastest = 1e300;
  for (const LadderStep& s : ladder.steps)
    if (s.timed()) slowest = std::max(slowest, s.ms.point), fastest = std::min(fastest, s.ms.point);
  for (std::size_t i = 0; i < ladder.steps.size(); ++i) {
    const LadderStep& s = ladder.steps[i];
    std::vector<std::string> row{s.rung.session, t.paint(Tone::kBold, s.rung.name), t.paint(s.gate_one == "PASS" ? Tone::kGood : Tone::kBad, s.gate_one)};
    if (timed && s.timed()) {
      const auto gain = ladder.gain(i);
      row.insert(row.end(), {format_time_ms(s.ms.point), figure(ladder, s), percent(s.percent_of_peak)});
      if (!compute) row.push_back(percent(ladder.percent_of_copy(s)));
      row.insert(row.end(), {percent(100 * s.of_library.point), gain ? fmt::format("{:.2f}x", *gain) : "", time_bar(s.ms.point, slowest, fastest)});
    } else if (timed) {
      row.insert(row.end(), header.size() - 4, "-");
    }
    if (counted && s.counts) row.insert(row.end(), {times(s.counts->sectors_per_request), times(s.counts->wavefronts_over_ideal), times(s.counts->moved_over_compulsory)});
    else if (counted) row.insert(row.end(), 3, "-");
    row.push_back(s.trouble.empty() || s.gate_one == "PASS" ? s.rung.title : s.trouble);
    table.row(std::move(row));
  }
  std::string text = table.text(t);
  if (counted) text += t.paint(Tone::kDim, "\nsectors: of 32 bytes, per request to global memory; wavefronts of shared memory and bytes moved: times the least possible");
  return text;
}

}  // namespace

std::string time_bar(double ms, double slowest, double fastest) {
  constexpr int kCells = 20;
  const double span = std::max(1.0, std::log2(slowest / fastest));
  const int cells = 1 + static_cast<int>(std::lround((kCells - 1) * std::log2(ms / fastest) / span));
  std::string text;
  for (int i = 0; i < cells; ++i) text += "█";
  return text;
}

bool counts_flops(const Ladder& ladder) { return ladder.bytes > 0 && ladder.flops / ladder.bytes > 50; }

std::string figure(const Ladder& ladder, const LadderStep& step) {
  return counts_flops(ladder) ? fmt::format("{:.2f}", ladder.throughput(step) / 1e12) : fmt::format("{:.0f}", ladder.bandwidth(step) / 1e9);
}

std::string ladder_heading(const Ladder& ladder) {
  std::string sizes;
  for (const auto& [name, value] : ladder.sizes.items()) sizes += fmt::format("{}{}={}", sizes.empty() ? "" : " ", name, value.get<std::int64_t>());
  return fmt::format("{}  ({}, {})", ladder.title, ladder.problem, sizes);
}

std::string ladder_origin(const Ladder& ladder) {
  if (ladder.backend == "emulated") return "checked on the CPU, not timed: a ladder's times need a GPU; `capstone explain RUNG` shows what each line moves";
  std::string text = fmt::format("{}, driver {}, cold L2, {}", ladder.device, ladder.driver, ladder.time);
  if (ladder.library_ms > 0) text += fmt::format("\nthe library: {} ({})", ladder.library, format_time_ms(ladder.library_ms));
  if (ladder.copy_bytes_per_second > 0) text += fmt::format("\na device copy in the same run: {}", format_bandwidth(ladder.copy_bytes_per_second));
  return text;
}

std::string ladder_text(const Ladder& ladder, const Terminal& t, bool recorded) {
  std::string text = t.paint(Tone::kBold, ladder_heading(ladder)) + "\n" + staircase(ladder, t) + "\n" +
                     t.paint(Tone::kDim, (recorded ? "RECORDED, not measured here: " : "") + ladder_origin(ladder));
  for (const LadderStep& s : ladder.steps)
    for (const std::string& label : s.labels) text += "\n" + t.paint(Tone::kWarn, s.rung.name + ": " + label);
  return text;
}

}  // namespace capstone::cli
