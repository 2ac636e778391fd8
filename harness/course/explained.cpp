#include "harness/course/explained.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"

namespace capstone {
namespace {

std::string index_text(const std::vector<std::int64_t>& index) {
  std::vector<std::string> parts;
  for (std::int64_t i : index) parts.push_back(std::to_string(i));
  return "[" + join(parts, ", ") + "]";
}

std::string case_text(const CaseResult& c) {
  std::vector<std::string> parts{c.id};
  for (auto size = c.sizes.begin(); size != c.sizes.end(); ++size)
    parts.push_back(size.key() + "=" + size->dump());
  for (const auto& [what, value] :
       {std::pair{"inputs ", c.battery}, {"build ", c.build}, {"schedule ", c.schedule}, {"seed ", c.seed}})
    if (!value.empty()) parts.push_back(what + value);
  return join(parts, ", ");
}

}  // namespace

std::vector<std::string> failure_lines(const Measurement& m) {
  std::vector<std::string> lines;
  if (m.gate_one == GateOne::kPassed) return lines;
  if (m.gate_one == GateOne::kBuildFailed) {
    const auto& error = m.build.first_error;
    lines.push_back(!error
                        ? "the compiler names no line"
                        : fmt::format("first error: {}{}: {}", error->file.empty() ? m.source : error->file,
                                      error->line ? fmt::format(":{}", error->line) : "", error->text));
  } else if (const CaseResult* bad = m.first_failure()) {
    const auto passed = std::count_if(m.cases.begin(), m.cases.end(), [](const auto& c) { return c.passed; });
    lines.push_back(
        fmt::format("first failure: {}{}", bad->problem, bad->where.empty() ? "" : " (" + bad->where + ")"));
    lines.push_back(
        fmt::format("in the case {}; {} of {} runs passed", case_text(*bad), passed, m.cases.size()));
    if (bad->diagnosis && !bad->diagnosis->first.empty()) {
      const Diagnosis& d = *bad->diagnosis;
      lines.push_back(fmt::format("first mismatch: {}{}: expected {}, {}; {} of {} elements are wrong{}",
                                  d.output, index_text(d.first), number_text(d.first_expected),
                                  got_text(d.first_got, d.first_unwritten), d.wrong, d.total,
                                  d.pattern.empty() ? "" : "; " + d.pattern));
    }
    if (!bad->hint.empty()) lines.push_back(bad->hint);
  }
  for (std::string& line : lines) line = to_utf8(line);
  return lines;
}

JudgedKernel explained(const Measurement& m) {
  std::string verdict(label_of(m.gate_one));
  if (m.gate_two != GateTwo::kNotJudged) verdict += fmt::format(", {}", label_of(m.gate_two));
  return {m.candidate, std::move(verdict), failure_lines(m)};
}

}  // namespace capstone
