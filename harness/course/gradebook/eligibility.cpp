#include "harness/course/gradebook/eligibility.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/course/gradebook/schema.h"

namespace capstone {
namespace {

// Another submission in which the same person is a member.
const GradebookRow* other_of(const GradebookRow& row, const std::vector<GradebookRow>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const GradebookRow& other) {
    return other.submission != row.submission && detail::key_of(other.person) == detail::key_of(row.person);
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::string why_not_eligible(const GradebookRow& row, const std::vector<GradebookRow>& all,
                             const Rubric& rubric, const std::map<std::string, ResultSummary>& summaries,
                             double at_least) {
  if (row.state != name_of(GradingState::kGraded))
    return row.state + (row.fault.empty() ? "" : " (" + row.fault + ")");
  if (const GradebookRow* other = other_of(row, all)) return "has another submission: " + other->submission;
  const auto total = row.total();
  if (!total)
    return std::any_of(row.marks.begin(), row.marks.end(), [](const auto& mark) { return mark.has_value(); })
               ? "not every criterion is published"
               : "no published marks";
  for (const auto& mark : row.marks)
    if (mark->earlier_version) return "the published marks are for an earlier version";
  if (*total < at_least) return fmt::format("{:g} of the required {:g} points", *total, at_least);
  const auto summary = summaries.find(row.submission);
  const Outcome* human = summary == summaries.end() ? nullptr : summary->second.of("human");
  if (!human || !human->correct)
    return "the human kernel: " + (human ? human->gate_one : std::string("not judged"));
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i) {
    const Criterion& c = rubric.criteria[i];
    if (c.rule == Criterion::Rule::kAllOrNothing && row.marks[i]->points <= c.levels.back().to)
      return fmt::format("{:g} of {} for {}", row.marks[i]->points, c.weight, c.id);
  }
  return {};
}

}  // namespace capstone
