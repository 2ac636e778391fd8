// What a batch came to, and the clearing of what a person has looked at.
#include <algorithm>

#include "harness/base/instant.h"
#include "harness/workflows/cohort.h"
#include "harness/workflows/grade_cohort.h"

namespace capstone::workflows {

bool GradeItem::settled() const {
  return result && (result->state == GradingState::kGraded || !cleared.empty());
}

bool GradeOutcome::complete() const {
  return std::all_of(items.begin(), items.end(),
                     [](const GradeItem& item) { return !item.dropped.empty() || item.settled(); });
}

double GradeOutcome::estimate() const {
  double taken = 0;
  int known = 0, waiting = 0;
  for (const GradeItem& item : items) {
    waiting += item.chosen && !item.because.empty();
    if (!item.result) continue;
    const auto begun = parse_instant(item.result->started), ended = parse_instant(item.result->finished);
    if (!begun || !ended) continue;
    taken += static_cast<double>(*ended - *begun);
    ++known;
  }
  return known ? taken / known * waiting : 0;
}

Result<void> clear_submissions(const Workspace& workspace, const std::string& cohort,
                               const std::vector<std::string>& names, const std::string& reason,
                               const std::string& grader) {
  CAPSTONE_TRY(OpenCohort open, open_cohort(workspace, cohort));
  std::vector<Ruling> rulings;
  for (const std::string& name : names)
    rulings.push_back({Ruling::Kind::kCleared, name, {}, reason, grader, {}, {}});
  return open.book.rule(rulings);
}

}  // namespace capstone::workflows
