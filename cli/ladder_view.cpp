#include "cli/ladder_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/text.h"

namespace capstone::cli {
namespace {

std::string percent(double value) { return value > 0 ? fmt::format("{:.1f} %", value) : "n/a"; }

std::string times(double value) { return value > 0 ? fmt::format("{:.3g}", value) : "-"; }

// The span of the times that the dots show.
struct Span {
  double slowest = 0, fastest = 1e300;
  explicit Span(const Ladder& ladder) {
    for (const LadderStep& s : ladder.steps)
      if (s.timed()) slowest = std::max(slowest, s.ms.point), fastest = std::min(fastest, s.ms.point);
  }
};

std::string news_of(const LadderStep& s) {
  return s.trouble.empty() || s.gate_one == "PASS" ? s.rung.title : s.trouble;
}

bool has_moved_at_measured(const LadderStep& s) { return s.counts && s.counts->at_measured > 0; }

// Everything about a rung on one line, or, where a terminal is too narrow for that, what is new on a second.
std::string ladder_view(const Ladder& ladder, const Terminal& t, bool whole, int axis_cells) {
  const bool timed =
      std::any_of(ladder.steps.begin(), ladder.steps.end(), [](const LadderStep& s) { return s.timed(); });
  const bool counted = std::any_of(ladder.steps.begin(), ladder.steps.end(),
                                   [](const LadderStep& s) { return s.counts.has_value(); });
  const bool passed = std::all_of(ladder.steps.begin(), ladder.steps.end(),
                                  [](const LadderStep& s) { return s.gate_one == "PASS"; });
  const bool compute = ladder.compute_bound(), gate = whole || !passed;
  std::vector<std::string> header, titles;
  if (whole) header.emplace_back("session");
  header.emplace_back("rung");
  if (gate) header.emplace_back("gate one");
  const bool sustained = std::any_of(ladder.steps.begin(), ladder.steps.end(),
                                     [](const LadderStep& s) { return s.sustained_ms.has_value(); });
  const std::size_t before = header.size();
  if (timed) {
    header.insert(header.end(), {"time", compute ? "TFLOP/s" : "GB/s", "of peak"});
    if (sustained) header.emplace_back("sustained");
    if (!compute) header.emplace_back("of a copy");
    header.insert(header.end(), {whole ? "of the library" : "of lib.", whole ? "over the last" : "gain"});
    if (axis_cells > 0) header.emplace_back();
  }
  const std::size_t times_cells = header.size() - before;
  const bool grown = std::any_of(ladder.steps.begin(), ladder.steps.end(), has_moved_at_measured);
  if (counted) header.insert(header.end(), {"sectors", "wavefronts", "moved"});
  if (grown) header.emplace_back("at full size");
  if (whole) header.emplace_back("what is new");
  Table table(header);
  const Span span(ladder);
  for (std::size_t i = 0; i < ladder.steps.size(); ++i) {
    const LadderStep& s = ladder.steps[i];
    std::vector<std::string> row;
    if (whole) row.push_back(s.rung.session);
    row.push_back(t.paint(Tone::kBold, s.rung.name));
    if (gate) row.push_back(t.paint(s.gate_one == "PASS" ? Tone::kGood : Tone::kBad, s.gate_one));
    if (timed && s.timed()) {
      const auto gain = ladder.gain(i);
      row.insert(row.end(), {format_time_ms(s.ms.point), figure(ladder, s), percent(s.percent_of_peak)});
      if (sustained) row.push_back(s.sustained_ms ? format_time_ms(s.sustained_ms->point) : "-");
      if (!compute) row.push_back(percent(ladder.percent_of_copy(s)));
      row.insert(row.end(), {percent(100 * s.of_library.point), gain ? fmt::format("{:.2f}x", *gain) : ""});
      if (axis_cells > 0) row.push_back(time_dot(s.ms.point, span.slowest, span.fastest, axis_cells));
    } else {
      row.insert(row.end(), times_cells, "-");
    }
    if (counted && s.counts)
      row.insert(row.end(), {times(s.counts->sectors_per_request), times(s.counts->wavefronts_over_ideal),
                             times(s.counts->moved_over_compulsory)});
    else if (counted)
      row.insert(row.end(), 3, "-");
    if (grown) row.push_back(has_moved_at_measured(s) ? times(s.counts->at_measured) : "-");
    if (whole) row.push_back(news_of(s));
    table.row(std::move(row));
  }
  return table.text(t);
}

std::string seconds_text(double seconds) { return seconds > 0 ? format_time_ms(seconds * 1e3) : "-"; }

// A ladder of languages: what was written and what is paid for it, next to what it gives.
// @param whole  false: without the tokens, and without a column that says PASS in each row
std::string languages_view(const Ladder& ladder, const Terminal& t, bool whole) {
  const bool compute = ladder.compute_bound();
  const bool gate = whole || std::any_of(ladder.steps.begin(), ladder.steps.end(),
                                         [](const LadderStep& s) { return s.gate_one != "PASS"; });
  std::vector<std::string> titles{"rung", "language", "lines"};
  if (whole) titles.emplace_back("tokens");
  if (gate) titles.emplace_back("gate one");
  titles.insert(titles.end(), {"compile", "launch", "time", compute ? "TFLOP/s" : "GB/s", "of lib."});
  Table table(titles);
  for (const LadderStep& s : ladder.steps) {
    if (!s.effort) continue;
    std::vector<std::string> row{t.paint(Tone::kBold, s.rung.name), s.effort->written.language,
                                 std::to_string(s.effort->written.lines)};
    if (whole) row.push_back(std::to_string(s.effort->written.tokens));
    if (gate) row.push_back(t.paint(s.gate_one == "PASS" ? Tone::kGood : Tone::kBad, s.gate_one));
    row.insert(row.end(), {seconds_text(s.effort->compile_seconds), seconds_text(s.effort->launch_ms / 1e3)});
    if (s.timed())
      row.insert(row.end(),
                 {format_time_ms(s.ms.point), figure(ladder, s), percent(100 * s.of_library.point)});
    else
      row.insert(row.end(), 3, "-");
    table.row(std::move(row));
  }
  std::string text = table.text(t);
  for (const LadderStep& s : ladder.steps)
    if (s.gate_one != "PASS" || !s.timed())
      if (!s.trouble.empty()) text += "\n" + t.paint(Tone::kDim, t.fold(s.rung.name + ": " + s.trouble));
  return text + "\n" +
         t.paint(Tone::kDim, t.fold("lines and tokens: without comments; compile: nvcc, or the longest first "
                                    "call of a Python kernel, never on the clock; launch: of the host, as "
                                    "the kernel's process says; a CUDA kernel that is replayed launches a "
                                    "recorded graph"));
}

// The widest form that the terminal has room for.
std::string fitting_ladder_view(const Ladder& ladder, const Terminal& t) {
  if (ladder.of_languages()) {
    const std::string text = languages_view(ladder, t, true);
    return t.fits(text) ? text : languages_view(ladder, t, false);
  }
  if (std::string text = ladder_view(ladder, t, true, kAxisCells); t.fits(text)) return text;
  std::string text;
  for (int cells : {kAxisCells, kAxisCells / 2, kAxisCells / 4, 0})
    if (text = ladder_view(ladder, t, false, cells); t.fits(text)) break;
  std::vector<std::string> lines = split(text, '\n');
  for (std::size_t i = 0; i < ladder.steps.size() && i + 1 < lines.size(); ++i)
    lines[i + 1] += "\n" + t.paint(Tone::kDim, t.fold("    " + news_of(ladder.steps[i])));
  return join(lines, "\n");
}

}  // namespace

std::string time_dot(double ms, double slowest, double fastest, int cells) {
  const double span = std::max(1.0, std::log2(slowest / fastest));
  const int at = static_cast<int>(std::lround((cells - 1) * std::log2(ms / fastest) / span));
  std::string text;
  for (int i = 0; i < cells; ++i) text += i == at ? "●" : "·";
  return text;
}

std::string figure(const Ladder& ladder, const LadderStep& step) {
  return ladder.compute_bound() ? fmt::format("{:.2f}", ladder.throughput(step) / 1e12)
                                : fmt::format("{:.0f}", ladder.bandwidth(step) / 1e9);
}

std::string ladder_heading(const Ladder& ladder) {
  std::string sizes;
  for (const auto& [name, value] : ladder.sizes.items())
    sizes += fmt::format("{}{}={}", sizes.empty() ? "" : " ", name, value.get<std::int64_t>());
  return fmt::format("{}  ({}, {})", ladder.title, ladder.problem, sizes);
}

std::string ladder_origin(const Ladder& ladder) {
  if (ladder.backend == "emulated")
    return "checked on the CPU, not timed: a ladder's times need a GPU; `capstone explain RUNG` shows what "
           "each line moves";
  std::string text = fmt::format("{}, driver {}, cold L2, {}", ladder.device, ladder.driver, ladder.time);
  if (ladder.library_ms > 0)
    text += fmt::format("\nthe library: {} ({})", ladder.library, format_time_ms(ladder.library_ms));
  if (ladder.copy_bytes_per_second > 0)
    text +=
        fmt::format("\na device copy in the same run: {}", format_bandwidth(ladder.copy_bytes_per_second));
  return text;
}

std::string over_sizes_text(const std::vector<Ladder>& ladders, const Terminal& t) {
  const auto means = over_sizes(ladders);
  if (means.empty()) return {};
  Table table({"problem", "rung", "sizes", "of the library"});
  for (const OverSizes& mean : means)
    table.row({mean.problem, mean.rung, std::to_string(mean.sizes), percent(100 * mean.of_library)});
  return t.paint(Tone::kBold, "Geometric mean over the sizes") + "\n" + table.text(t);
}

std::string ladder_text(const Ladder& ladder, const Terminal& t, bool recorded) {
  const auto any = [&](auto holds) { return std::any_of(ladder.steps.begin(), ladder.steps.end(), holds); };
  std::string text =
      t.paint(Tone::kBold, t.fold(ladder_heading(ladder))) + "\n" + fitting_ladder_view(ladder, t);
  if (any([](const LadderStep& s) { return s.counts.has_value(); }))
    text += "\n" +
            t.paint(Tone::kDim, t.fold("sectors: of 32 bytes, per request to global memory; wavefronts of "
                                       "shared memory and bytes moved: times the least possible")) +
            (any(has_moved_at_measured)
                 ? "\n" + t.paint(Tone::kDim,
                                  t.fold("at full size: bytes moved at the size above, before caches, by "
                                         "a rule that runs at larger sizes taught and tested"))
                 : "");
  if (!ladder.of_languages() && any([](const LadderStep& s) { return s.timed(); }))
    text += "\n" + t.paint(Tone::kDim, "dots: the times on a logarithmic axis, the fastest on the left");
  text += "\n" + t.paint(Tone::kDim,
                         t.fold((recorded ? "RECORDED, not measured here: " : "") + ladder_origin(ladder)));
  for (const LadderStep& s : ladder.steps)
    for (const std::string& label : s.labels)
      text += "\n" + t.paint(Tone::kWarn, t.fold(s.rung.name + ": " + label));
  return text;
}

}  // namespace capstone::cli
