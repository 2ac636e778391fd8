#include "rubric/rubric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rubric/checks.h"

namespace capstone {

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::kMet: return "met";
    case Standing::kPartly: return "partly met";
    case Standing::kNotMet: return "not met";
    case Standing::kNotApplicable: return "does not apply";
  }
  return "?";
}

std::vector<std::string> check_ids() {
  std::vector<std::string> ids;
  for (const auto& [id, function] : detail::checks()) ids.push_back(id);
  return ids;
}

namespace {

constexpr double kNearlyAll = 0.999;

Evidence gather(const Check& check, const detail::Sources& sources) {
  detail::Fact fact = detail::checks().at(check.id)(sources);
  Evidence e{check.id, check.says, fact.text, fact.records, Standing::kNotMet, fact.met, check.share};
  if (!fact.applies) e.standing = Standing::kNotApplicable;
  else if (fact.met >= kNearlyAll) e.standing = Standing::kMet;
  else if (fact.met > 0) e.standing = Standing::kPartly;
  return e;
}

double half_marks(double marks) { return std::round(marks * 2) / 2; }

// The share of the marks that the evidence carries; checks that do not apply drop out of both sums.
void suggest_by_share(CriterionScore& result) {
  double have = 0, possible = 0;
  bool capped = false;
  for (std::size_t i = 0; i < result.evidence.size(); ++i) {
    const Evidence& e = result.evidence[i];
    if (e.standing == Standing::kNotApplicable) continue;
    have += e.share * e.met;
    possible += e.share;
    capped |= result.criterion->checks[i].required && e.standing != Standing::kMet;
  }
  double part = possible > 0 ? have / possible : 0;
  result.because = fmt::format("{:.3g} of {:.3g} shares of evidence", have, possible);
  if (capped && part > result.criterion->cap) {
    part = result.criterion->cap;
    result.because += fmt::format("; at most {:.0f} % because a required check is not met", 100 * part);
  }
  result.suggested = half_marks(part * result.criterion->weight);
}

void suggest_all_or_nothing(CriterionScore& result) {
  auto broken = std::find_if(result.evidence.begin(), result.evidence.end(), [](const Evidence& e) {
    return e.standing != Standing::kMet && e.standing != Standing::kNotApplicable;
  });
  bool whole = broken == result.evidence.end();
  result.suggested = whole ? result.criterion->weight : 0;
  result.because = whole ? "every check is met" : fmt::format("all or nothing: {}", broken->fact);
}

}  // namespace

ScoreSheet score(const Rubric& rubric, const Project& project, const LedgerView& ledger, const Worklog& worklog) {
  detail::Sources sources{project, ledger, worklog};
  ScoreSheet sheet;
  sheet.rubric_digest = rubric.digest;
  for (const Criterion& criterion : rubric.criteria) {
    CriterionScore result;
    result.criterion = &criterion;
    for (const Check& check : criterion.checks) result.evidence.push_back(gather(check, sources));
    if (criterion.rule == Criterion::Rule::kShare) suggest_by_share(result);
    else suggest_all_or_nothing(result);
    sheet.suggested += result.suggested;
    sheet.criteria.push_back(std::move(result));
  }
  return sheet;
}

}  // namespace capstone
