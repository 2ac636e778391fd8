#include "rubric/rubric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/text.h"
#include "rubric/anomalies.h"
#include "rubric/checks.h"

namespace capstone {

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::kMet:
      return "met";
    case Standing::kPartly:
      return "partly met";
    case Standing::kNotMet:
      return "not met";
    case Standing::kNotApplicable:
      return "does not apply";
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
  Evidence e{check.id,          check.says, fact.text,   fact.records,
             Standing::kNotMet, fact.met,   check.share, fact.ask};
  if (!fact.applies)
    e.standing = Standing::kNotApplicable;
  else if (fact.met >= kNearlyAll)
    e.standing = Standing::kMet;
  else if (fact.met > 0)
    e.standing = Standing::kPartly;
  return e;
}

double half_marks(double marks) { return std::round(marks * 2) / 2; }

// Suggests marks in proportion to the evidence. Checks that do not apply are left out of both sums.
void suggest_by_share(CriterionScore& result) {
  double have = 0, possible = 0;
  bool capped = false;
  for (std::size_t i = 0; i < result.evidence.size(); ++i) {
    const Evidence& e = result.evidence[i];
    if (e.standing == Standing::kNotApplicable) continue;
    have += e.share * e.met;
    possible += e.share;
    capped |= result.criterion->checks[i].required && e.standing == Standing::kNotMet;
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
  const Evidence* broken = nullptr;
  for (std::size_t i = 0; i < result.evidence.size() && !broken; ++i) {
    const Evidence& e = result.evidence[i];
    if (!result.criterion->checks[i].gate && e.standing != Standing::kMet &&
        e.standing != Standing::kNotApplicable)
      broken = &e;
  }
  result.suggested = broken ? 0 : result.criterion->weight;
  result.because = broken ? fmt::format("all or nothing: {}", broken->fact) : "every check is met";
}

// Without what a gate asks for, the other evidence is no work of the student's.
void close_gates(CriterionScore& result) {
  const double most = result.criterion->levels.back().to;
  for (std::size_t i = 0; i < result.evidence.size(); ++i) {
    const Evidence& e = result.evidence[i];
    if (!result.criterion->checks[i].gate || e.standing == Standing::kNotApplicable || e.met >= 0.5) continue;
    if (result.suggested <= most) continue;
    result.suggested = most;
    result.because +=
        fmt::format("; no more than the level \"{}\": {}", result.criterion->levels.back().name, e.fact);
  }
}

// No check: a check that anyone fails to meet would cost marks.
std::string hints_taken(const LedgerView& ledger) {
  std::vector<std::string> told;
  for (const TakenHint& hint : ledger.hints) told.push_back(hint.told());
  return fmt::format(
      "Hints of the tool were taken: {}. They cost no marks: the worklog is graded, and section 2 can say "
      "what "
      "each one changed.",
      join(told, "; "));
}

}  // namespace

std::vector<std::string> questions_of(const CriterionScore& score) {
  std::vector<std::string> questions = score.criterion->questions;
  for (const Evidence& e : score.evidence)
    if (!e.ask.empty()) questions.push_back(e.ask);
  return questions;
}

ScoreSheet score(const Rubric& rubric, const Project& project, const LedgerView& ledger,
                 const Worklog& worklog, const Rejudged* rejudged) {
  detail::Sources sources{project, ledger, worklog, rejudged};
  ScoreSheet sheet;
  sheet.rubric_digest = rubric.digest;
  if (!ledger.hints.empty()) sheet.facts.push_back(hints_taken(ledger));
  for (const Criterion& criterion : rubric.criteria) {
    CriterionScore result;
    result.criterion = &criterion;
    for (const Check& check : criterion.checks) result.evidence.push_back(gather(check, sources));
    if (criterion.rule == Criterion::Rule::kShare)
      suggest_by_share(result);
    else
      suggest_all_or_nothing(result);
    close_gates(result);
    sheet.suggested += result.suggested;
    sheet.criteria.push_back(std::move(result));
  }
  return sheet;
}

std::vector<std::string> left_out_versions(const LedgerView& ledger, const Worklog& worklog) {
  std::vector<std::string> out;
  for (const char* candidate : {"human", "llm"}) {
    const Measurement* best = ledger.best(candidate);
    auto speedup = [](const Measurement* m) {
      return m && m->measured && m->measured->speedup ? m->measured->speedup->point : 0;
    };
    for (const Measurement* m : ledger.versions(candidate)) {
      if (std::any_of(worklog.paragraphs.begin(), worklog.paragraphs.end(),
                      [&](const Paragraph& p) { return names(p.text, m->version); }))
        continue;
      if (m->gate_one == GateOne::kMachineFault || m->gate_one == GateOne::kNotJudgeable) continue;
      if (m->gate_one != GateOne::kPassed)
        out.push_back(fmt::format("{}: {}", m->version, label_of(m->gate_one)));
      else if (speedup(m) > 0 && speedup(m) < speedup(best))
        out.push_back(fmt::format("{}: {}, the best is {}", m->version, format_speedup(speedup(m)),
                                  format_speedup(speedup(best))));
    }
  }
  return out;
}

}  // namespace capstone
