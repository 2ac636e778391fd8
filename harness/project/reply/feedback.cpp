#include "harness/project/reply/feedback.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/model/sizes_text.h"
#include "harness/project/reply/prompt.h"

namespace capstone {
namespace {

constexpr std::size_t kLogLines = 40;
constexpr std::size_t kLogBytes = 4096;
constexpr std::size_t kFailedCases = 3;

// The first lines of a log: the first error usually explains the others.
std::string excerpt(std::string_view log) {
  std::string text;
  std::size_t lines = 0;
  for (const std::string& line : split(trim(log), '\n')) {
    if (++lines > kLogLines || text.size() + line.size() > kLogBytes) return text + "…";
    text += line + '\n';
  }
  return text;
}

std::string build_failure(const BuildResult& build) {
  std::string text = "It does not compile.\n\n";
  if (build.first_error)
    text += fmt::format("First error, line {}, column {}: {}\n\n", build.first_error->line,
                        build.first_error->column, trim(to_utf8(build.first_error->text)));
  if (!trim(build.log).empty()) text += fenced("text", excerpt(to_utf8(build.log))) + "\n";
  return text;
}

std::string index_of(const std::vector<std::int64_t>& index) {
  return fmt::format("[{}]", fmt::join(index, ", "));
}

std::string diagnosis_of(const Diagnosis& d) {
  std::string text = fmt::format("  - `{}`: {} of {} elements are wrong", d.output, d.wrong, d.total);
  if (!d.pattern.empty()) text += "; " + d.pattern;
  text += ".\n";
  text += fmt::format("  - First at {}: expected {}, {}. Worst at {}: expected {}, {}.\n", index_of(d.first),
                      number_text(d.first_expected, 9), got_text(d.first_got, d.first_unwritten, 9),
                      index_of(d.worst), number_text(d.worst_expected, 9),
                      got_text(d.worst_got, d.worst_unwritten, 9));
  if (!d.hint.empty()) text += fmt::format("  - {}\n", d.hint);
  return text;
}

std::string failed_case(const CaseResult& c) {
  std::string text = fmt::format("- Case `{}` ({}): {}", c.id, sizes_text(c.sizes), c.problem);
  if (!c.where.empty()) text += fmt::format(", at {}", c.where);
  text += ".\n";
  if (c.diagnosis) text += diagnosis_of(*c.diagnosis);
  if (!c.hint.empty() && (!c.diagnosis || c.diagnosis->hint != c.hint))
    text += fmt::format("  - {}\n", c.hint);
  return text;
}

std::string gate_one_failure(const Measurement& m) {
  std::string text = fmt::format("Gate one: **{}**.\n\n", label_of(m.gate_one));
  auto passed = std::count_if(m.cases.begin(), m.cases.end(), [](const CaseResult& c) { return c.passed; });
  if (!m.cases.empty()) text += fmt::format("{} of {} cases passed.\n\n", passed, m.cases.size());
  std::size_t shown = 0;
  for (const CaseResult& c : m.cases)
    if (!c.passed && shown++ < kFailedCases) text += failed_case(c);
  if (shown > kFailedCases) text += fmt::format("- and {} more failed cases\n", shown - kFailedCases);
  return text;
}

std::string times_of(const Measured& measured) {
  std::string text = fmt::format("Sizes: {}. Clock: {}.\n\n| | median | 95 % interval |\n|---|---|---|\n",
                                 sizes_text(measured.sizes), measured.clock);
  for (const Arm& arm : measured.arms)
    text += fmt::format("| {} | {} | {} to {} |\n", arm.label.empty() ? arm.name : arm.label,
                        format_time_ms(arm.median_ms.point), format_time_ms(arm.median_ms.low),
                        format_time_ms(arm.median_ms.high));
  if (measured.speedup)
    text += fmt::format("\nSpeedup over the baseline: {} (95 % interval {} to {}).\n",
                        format_speedup(measured.speedup->point), format_speedup(measured.speedup->low),
                        format_speedup(measured.speedup->high));
  if (measured.percent_of_peak > 0)
    text += fmt::format("\n{:.1f} % of {}; bound by {}.\n", measured.percent_of_peak, measured.peak,
                        measured.bound_by);
  return text;
}

std::string gate_two(const Measurement& m) {
  std::string text = "Gate one: **PASS**, correct in every case.\n\n";
  text += fmt::format("Gate two: **{}**", label_of(m.gate_two));
  if (!m.gate_two_reason.empty()) text += ": " + m.gate_two_reason;
  text += ".\n";
  if (m.measured && m.gate_two != GateTwo::kNotJudged) text += "\n" + times_of(*m.measured);
  return text;
}

std::string traffic_of(const Explanation& e) {
  std::string text = fmt::format(
      "One run at {} was counted on an emulator, access by access. It touched {} of "
      "global memory",
      sizes_text(e.sizes), format_bytes(e.moved_bytes()));
  if (e.compulsory_bytes > 0)
    text += fmt::format(", {:.3g} times the {} that the problem has to move",
                        e.moved_bytes() / e.compulsory_bytes, format_bytes(e.compulsory_bytes));
  if (e.total.flops) text += fmt::format(", and did {} FLOP", e.total.flops);
  if (e.total.flops && e.compulsory_flops > 0)
    text += fmt::format("; the problem's cost model counts {:.4g}", e.compulsory_flops);
  return text + ".\n";
}

}  // namespace

std::string describe_counts(const Explanation& e) {
  std::string text = traffic_of(e);
  for (const Advice& advice : e.advice) {
    text += fmt::format("- Line {}, {:.0f} % of the modelled cost, {}: {}.", advice.line, advice.share * 100,
                        advice.pattern, advice.what);
    if (!advice.remedy.empty()) text += fmt::format(" Remedy: {}.", advice.remedy);
    text += '\n';
  }
  if (!e.caution.empty()) text += fmt::format("- Note: {}.\n", e.caution);
  if (e.floor)
    text +=
        fmt::format("- Modelled, not measured: with these counts it takes at least {} on {}, bound by {}.\n",
                    format_time_ms(e.floor->ms()), e.floor->place(), e.floor->bound_by);
  return text;
}

std::string describe_profile(const Json& record) {
  std::string text;
  const auto answers = record.find("answers");
  if (answers == record.end() || !answers->is_array()) return text;
  for (const Json& answer : *answers)
    if (answer.is_string()) text += fmt::format("- {}\n", to_utf8(answer.get<std::string>()));
  const std::string ncu = record.value("ncu", std::string());
  return text.empty() ? text
                      : (ncu.empty() ? "From the compiler and the machine code:\n"
                                     : "From one profiled launch on the GPU:\n") +
                            text;
}

std::string describe_verdict(const Measurement& m) {
  if (m.gate_one == GateOne::kBuildFailed) return build_failure(m.build);
  return m.gate_one == GateOne::kPassed ? gate_two(m) : gate_one_failure(m);
}

}  // namespace capstone
