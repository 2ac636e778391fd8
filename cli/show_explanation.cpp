#include "cli/show_explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"

namespace capstone::cli {
namespace {

constexpr std::size_t kMostLines = 14;
constexpr double kLeastShare = 0.005;
constexpr std::size_t kMostSource = 60;

// "32.0 (4.0)": per request, and what would do.
std::string per_request(const Traffic& t) {
  return t.requests ? fmt::format("{:.1f} ({:.1f})", t.units_per_request(), t.ideal_per_request()) : std::string("-");
}

Tone tone_of(const Traffic& t) { return t.excess() >= 2 ? Tone::kBad : t.excess() >= 1.25 ? Tone::kWarn : Tone::kPlain; }

std::string lanes(const LineCounts& c) {
  const std::uint64_t requests = c.global.requests + c.shared.requests;
  return requests ? fmt::format("{:.1f}", double(c.global.active_lanes + c.shared.active_lanes) / double(requests)) : std::string("-");
}

std::string count(std::uint64_t n) { return n == 0 ? std::string("-") : n < 100000 ? std::to_string(n) : fmt::format("{:.3g}M", double(n) / 1e6); }

std::string shortened(std::string text) {
  if (display_width(text) <= kMostSource) return text;
  return to_utf8(text.substr(0, kMostSource - 1)) + "…";
}

std::vector<const LineCounts*> lines_that_matter(const KernelCounts& kernel) {
  std::vector<const LineCounts*> lines;
  for (const LineCounts& line : kernel.lines)
    if (line.share >= kLeastShare || line.barriers > 0) lines.push_back(&line);
  std::stable_sort(lines.begin(), lines.end(), [](const LineCounts* a, const LineCounts* b) { return a->share > b->share; });
  if (lines.size() > kMostLines) lines.resize(kMostLines);
  std::sort(lines.begin(), lines.end(), [](const LineCounts* a, const LineCounts* b) { return std::tie(a->file, a->line) < std::tie(b->file, b->line); });
  return lines;
}

std::string kernel_table(const KernelCounts& kernel, const Terminal& t) {
  Table table({"line", "sectors", "wavefronts", "lanes", "moved", "FLOP", "barriers", "atomics", "cost", "source"},
              {false, true, true, true, true, true, true, true, true, false});
  for (const LineCounts* c : lines_that_matter(kernel))
    table.row({c->line ? fmt::format("{}:{}", c->file, c->line) : std::string("(headers)"), t.paint(tone_of(c->global), per_request(c->global)),
               t.paint(tone_of(c->shared), per_request(c->shared)), lanes(*c), c->global.units ? format_bytes(double(c->global.units) * 32) : "-", count(c->flops),
               count(c->barriers), count(c->atomics), fmt::format("{:.0f} %", c->share * 100), shortened(c->text)});
  return table.text(t);
}

}  // namespace

std::string explanation_text(const Explanation& e, const Terminal& t) {
  std::vector<std::string> sizes;
  for (const auto& [symbol, value] : e.sizes.items()) sizes.push_back(symbol + "=" + value.dump());
  std::string text = fmt::format("{} of {} at {}", t.paint(Tone::kBold, e.source), e.problem_id, join(sizes, ", "));
  for (const KernelCounts& kernel : e.kernels) {
    text += fmt::format("\n\n{}: {} {}, {} blocks, {} threads\n", t.paint(Tone::kBold, kernel.kernel), kernel.launches, kernel.launches == 1 ? "launch" : "launches",
                        kernel.blocks, kernel.threads);
    text += kernel_table(kernel, t);
  }
  text += t.paint(Tone::kDim, "\nsectors: of 32 bytes, per request of a warp to global memory; wavefronts: per request to shared memory; in brackets what would do");
  const double again = e.compulsory_bytes > 0 ? e.moved_bytes() / e.compulsory_bytes : 0;
  text += fmt::format("\n\ntouched {} of global memory{}; {} FLOP{}; {:.3g} FLOP a byte asked for",
                      format_bytes(e.moved_bytes()), again > 0 ? fmt::format(", {:.3g} times the {} that the problem has to move", again, format_bytes(e.compulsory_bytes)) : "",
                      count(e.total.flops), e.compulsory_flops > 0 ? fmt::format(" (the best algorithm: {:.3g}M)", e.compulsory_flops / 1e6) : "", e.intensity());
  int number = 0;
  for (const Remark& r : e.remarks) {
    text += fmt::format("\n{}. {}:{}, {:.0f} % of the cost: {}: {}", ++number, r.file, r.line, r.share * 100, t.paint(Tone::kWarn, r.pattern), r.what);
    text += "\n   remedy: " + r.remedy;
  }
  if (e.floor)
    text += fmt::format("\n{}: on {} at least {} ({}): memory {}, shared memory and L1 {}, compute {}", t.paint(Tone::kBold, "modelled, not measured"), e.floor->device,
                        format_time_ms(e.floor->ms()), e.floor->bound_by, format_time_ms(e.floor->memory_ms), format_time_ms(e.floor->wavefront_ms),
                        format_time_ms(e.floor->compute_ms));
  return text;
}

}  // namespace capstone::cli
