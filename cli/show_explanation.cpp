#include "cli/show_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "harness/base/text.h"
#include "harness/model/sizes_text.h"

namespace capstone::cli {
namespace {

constexpr std::size_t kMostLines = 14;
constexpr double kLeastShare = 0.005;
constexpr std::size_t kLeastSource = 20;

// "32.0 (4.0)": per request, and what would do.
std::string per_request(const Traffic& t) {
  return t.requests ? fmt::format("{:.1f} ({:.1f})", t.units_per_request(), t.ideal_per_request())
                    : std::string("-");
}

Tone tone_of(const Traffic& t) {
  return t.excess() >= 2 ? Tone::kBad : t.excess() >= 1.25 ? Tone::kWarn : Tone::kPlain;
}

std::string lanes(const LineCounts& c) {
  const Traffic both = c.both();
  return both.requests_of_lanes() ? fmt::format("{:.1f}", both.lanes_per_request()) : std::string("-");
}

std::string count(std::uint64_t n) {
  return n == 0 ? std::string("-") : n < 100000 ? std::to_string(n) : fmt::format("{:.3g}M", double(n) / 1e6);
}

// 0.25 FLOP a byte, 12.3, 512.
std::string intensity(const LineCounts& c) {
  return c.flops && c.global.bytes + c.shared.bytes ? fmt::format("{:.3g}", c.intensity()) : std::string("-");
}

std::string shortened(std::string text, std::size_t most) {
  if (display_width(text) <= most) return text;
  std::size_t end = 0;
  for (std::size_t shown = 1; shown < most;
       ++shown)  // whole characters: behind a first byte come its 10xxxxxx
    for (++end; end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u;) ++end;
  return text.substr(0, end) + "…";
}

std::vector<const LineCounts*> lines_that_matter(const KernelCounts& kernel) {
  std::vector<const LineCounts*> lines;
  for (const LineCounts& line : kernel.lines)
    if (line.share >= kLeastShare || line.barriers > 0) lines.push_back(&line);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const LineCounts* a, const LineCounts* b) { return a->share > b->share; });
  if (lines.size() > kMostLines) lines.resize(kMostLines);
  std::sort(lines.begin(), lines.end(), [](const LineCounts* a, const LineCounts* b) {
    return std::tie(a->file, a->line) < std::tie(b->file, b->line);
  });
  return lines;
}

std::vector<std::string> cells_of(const LineCounts& c, const std::string& place, const Terminal& t) {
  return {place,
          t.paint(tone_of(c.global), per_request(c.global)),
          t.paint(tone_of(c.shared), per_request(c.shared)),
          lanes(c),
          c.global.units ? format_bytes(c.moved_bytes()) : "-",
          count(c.flops),
          intensity(c),
          count(c.barriers),
          count(c.atomics),
          fmt::format("{:.0f} %", c.share * 100)};
}

// The kernel's own file goes without saying.
std::string place_of(const LineCounts& c, const std::string& own_file) {
  return c.line == 0          ? "headers"
         : c.file == own_file ? std::to_string(c.line)
                              : fmt::format("{}:{}", c.file, c.line);
}

std::string kernel_table(const KernelCounts& kernel, const std::string& own_file, const Terminal& t) {
  std::vector<std::string> titles{"line", "sectors", "wavefronts", "lanes",   "moved",
                                  "FLOP", "FLOP/B",  "barriers",   "atomics", "cost"};
  const std::vector<const LineCounts*> lines = lines_that_matter(kernel);
  std::vector<std::vector<std::string>> rows;
  for (const LineCounts* c : lines) rows.push_back(cells_of(*c, place_of(*c, own_file), t));
  rows.push_back(cells_of(kernel.total(), "all", t));
  // What does not occur takes no column, and the source what the numbers leave of the terminal's width.
  for (std::size_t column = titles.size(); column-- > 1;) {
    if (!std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return row[column] == "-"; })) continue;
    titles.erase(titles.begin() + static_cast<std::ptrdiff_t>(column));
    for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  const std::vector<bool> right(titles.size(), true);
  Table numbers(titles, right);
  for (const auto& row : rows) numbers.row(row);
  const std::string measured = numbers.text(t);
  const std::size_t used = display_width(std::string_view(measured).substr(0, measured.find('\n'))) + 2;
  const auto width = static_cast<std::size_t>(t.width());
  const std::size_t room = std::max(kLeastSource, width > used ? width - used : 0);
  if (!t.fits(std::string(used + kLeastSource, ' '))) return measured;  // line numbers must do
  titles.emplace_back("source");
  Table table(titles, right);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].push_back(i < lines.size() ? shortened(lines[i]->text, room) : std::string());
    table.row(std::move(rows[i]));
  }
  return table.text(t);
}

/// What the lines that matter reach: loads and stores apart, arrays named.
std::string array_table(const KernelCounts& kernel, const std::string& own_file, const Terminal& t) {
  Table table({"line", "array", "access", "requests", "per request", "bytes asked for"},
              {true, false, false, true, true, true});
  bool any = false;
  for (const LineCounts* c : lines_that_matter(kernel))
    for (const ArrayTraffic& a : c->arrays) {
      any = true;
      table.row(
          {place_of(*c, own_file), a.shared ? a.name + " (shared)" : a.name, a.access,
           count(a.traffic.requests),
           t.paint(tone_of(a.traffic), per_request(a.traffic) + (a.shared ? " wavefronts" : " sectors")),
           format_bytes(double(a.traffic.bytes))});
    }
  return any ? table.text(t) : std::string();
}

std::string tensor_memory_text(const TensorMemoryTraffic& t) {
  std::string text =
      fmt::format("tensor memory: warps load {} and store {}; products and copies read {} and write {}",
                  format_bytes(double(t.loaded)), format_bytes(double(t.stored)),
                  format_bytes(double(t.engine_read)), format_bytes(double(t.engine_written)));
  for (const auto& [kind, flops] : t.flops) text += fmt::format("; {} FLOP of kind {}", count(flops), kind);
  return text;
}

}  // namespace

std::string predicted_text(const ModelledFloor& floor, const Terminal& t) {
  std::string text = fmt::format("{}: at least {} on {} ({}): memory {}, shared memory and L1 {}, compute {}",
                                 t.paint(Tone::kBold, "modelled, not measured"), format_time_ms(floor.ms()),
                                 floor.place(), floor.bound_by, format_time_ms(floor.memory_ms),
                                 format_time_ms(floor.wavefront_ms), format_time_ms(floor.compute_ms));
  if (floor.by_rule)
    text += "; wavefronts and FLOPs grow there by a rule that larger runs taught";
  else if (floor.scale != 1)
    text += fmt::format(
        "; wavefronts and FLOPs are those of the observed run, times {:.4g}, as the problem's "
        "own work grows",
        floor.scale);
  return text;
}

std::string explanation_text(const Explanation& e, const Terminal& t) {
  std::string text = t.paint(Tone::kBold, e.source);
  text += e.is_program() ? fmt::format(", {} kernels", e.kernels.size())
                         : fmt::format(" of {} at {}", e.problem_id, sizes_text(e.sizes));
  for (const KernelCounts& kernel : e.kernels) {
    text += fmt::format("\n\n{}: {} {}, {} blocks, {} threads\n", t.paint(Tone::kBold, kernel.kernel),
                        kernel.launches, kernel.launches == 1 ? "launch" : "launches", kernel.blocks,
                        kernel.threads);
    const std::string own_file = std::filesystem::path(e.source).filename().string();
    text += kernel_table(kernel, own_file, t);
    if (e.is_program()) text += "\n" + array_table(kernel, own_file, t);
  }
  text += t.paint(Tone::kDim,
                  "\nsectors: of 32 bytes, per request of a warp to global memory; wavefronts: per request "
                  "to shared memory; in brackets what would do;\n"
                  "lanes: active of 32; moved: sectors touched; FLOP/B: a byte asked for in either memory; "
                  "cost: modelled share of the clocks" +
                      (e.is_program() ? "" : " at " + e.place_of_shares()));
  const double again = e.compulsory_bytes > 0 ? e.moved_bytes() / e.compulsory_bytes : 0;
  text += fmt::format(
      "\n\ntouched {} of global memory{}; {} FLOP{}; {:.3g} FLOP a byte asked for",
      format_bytes(e.moved_bytes()),
      again > 0 ? fmt::format(", {:.3g} times the {} that {}", again, format_bytes(e.compulsory_bytes),
                              e.what_is_compulsory())
                : "",
      e.total.flops ? count(e.total.flops) : "0",
      e.compulsory_flops > 0 ? fmt::format(" (the best algorithm: {:.3g}M)", e.compulsory_flops / 1e6) : "",
      e.intensity());
  if (e.total.tensor.any()) text += "\n" + tensor_memory_text(e.total.tensor);
  if (e.total.global.requests == 0)
    text +=
        "\n" +
        t.paint(Tone::kWarn,
                "nothing was read from global memory, nothing written: is this the kernel that you mean?");
  int number = 0;
  for (const Advice& r : e.advice) {
    text += fmt::format("\n{}. {}:{}, {:.0f} % of the cost: {}: {}", ++number, r.file, r.line, r.share * 100,
                        t.paint(Tone::kWarn, r.pattern), r.what);
    text += "\n   remedy: " + r.remedy;
  }
  if (!e.caution.empty()) text += "\n" + t.paint(Tone::kWarn, "note: ") + e.caution;
  if (e.floor) text += "\n" + predicted_text(*e.floor, t);
  return t.fold(text, 0);
}

}  // namespace capstone::cli
