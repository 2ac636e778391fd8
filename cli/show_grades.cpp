#include "cli/show_grades.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "harness/base/text.h"
#include "harness/project/ledger/judge_key.h"

namespace capstone::cli {
namespace {

using workflows::GradeItem;
using workflows::GradeOutcome;

constexpr std::size_t kLongSummary =
    40;  // submissions; of a larger cohort the table lists only those that need attention

std::string cell_of(const Measurement* m) {
  if (!m) return "-";
  if (m->gate_two == GateTwo::kNotJudged) return std::string(label_of(m->gate_one));
  return fmt::format("{}, {}", label_of(m->gate_one), label_of(m->gate_two));
}

std::string state_text(const GradeItem& item) {
  if (!item.dropped.empty()) return "dropped";
  if (!item.cleared.empty()) return "cleared";
  return std::string(name_of(item.result ? item.result->state : GradingState::kQueued));
}

void print_roster(const GradeOutcome& outcome, const Terminal& t) {
  if (!outcome.has_roster) return;
  for (std::size_t i = 0; i < outcome.roster.size(); ++i) {
    const RosterRow& row = outcome.roster[i];
    const std::vector<std::string>& submissions = outcome.match.submissions[i];
    if (submissions.empty())
      t.out("never submitted: " + row.name + (row.id.empty() ? "" : " (" + row.id + ")"));
    if (submissions.size() > 1)
      t.out("more than one submission: " + row.name + ": " + join(submissions, ", ") +
            "; `capstone gradebook choose NAME --reason TEXT` takes one of them");
  }
  for (const std::string& stranger : outcome.match.strangers) t.out("not in the roster: " + stranger);
}

// Which machines vouch for what the student measured.
std::string vouched_by(const GradeItem& item, const GradeOutcome& outcome) {
  std::vector<std::string> names;
  if (item.result)
    for (const Voucher& v : item.result->vouchers) {
      const auto known = outcome.judges.find(v.key);
      names.push_back(v.key.empty()                   ? "own word"
                      : known != outcome.judges.end() ? known->second
                                                      : "unknown " + v.key.substr(0, kShortKey));
    }
  return names.empty() ? "-" : join(names, ", ");
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  return seconds < 5400 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

std::string grade_line(const GradeItem& item) {
  if (!item.result) return "queued";
  const SubmissionResult& r = *item.result;
  const std::string state(name_of(r.state));
  if (r.fault != GradingFault::kNone) return fmt::format("{} ({}): {}", state, name_of(r.fault), r.why);
  return fmt::format("{}: human {}, model {}", state, cell_of(r.of("human")), cell_of(r.of("llm")));
}

void print_grading_plan(const GradeOutcome& outcome, const Terminal& t) {
  Table table({"submission", "from", "late", "what would be done"});
  for (const GradeItem& item : outcome.items)
    table.row({item.submission.name, to_utf8(item.submission.shown), item.lateness,
               !item.dropped.empty()  ? "nothing: dropped (" + to_utf8(item.dropped) + ")"
               : !item.chosen         ? "left out (--only)"
               : item.because.empty() ? "nothing: unchanged"
                                      : "grade: " + item.because});
  t.out(table.text(t));
  for (const std::string& name : outcome.ignored) t.out("not a submission: " + to_utf8(name));
  print_roster(outcome, t);
  if (const double seconds = outcome.estimate(); seconds > 0)
    t.out("about " + duration_text(seconds) + " with one submission at a time, as the earlier ones took");
  t.out("nothing was written (--dry-run)");
}

void print_grades(const GradeOutcome& outcome, const Terminal& t) {
  Table table({"submission", "state", "late", "human", "model", "suggested", "measured by"},
              {false, false, false, false, false, true, false});
  std::map<std::string, int> states;
  std::vector<std::string> reasons;  // below the table: they are sentences
  for (const GradeItem& item : outcome.items) {
    const std::string state = state_text(item);
    ++states[state];
    if (outcome.items.size() > kLongSummary && item.settled() && item.lateness.empty()) continue;
    const SubmissionResult* r = item.result ? &*item.result : nullptr;
    table.row({item.submission.name, state, item.lateness, r ? cell_of(r->of("human")) : "-",
               r ? cell_of(r->of("llm")) : "-",
               item.settled() ? fmt::format("{:g}", r->suggested_total()) : "-", vouched_by(item, outcome)});
    if (!item.dropped.empty())
      reasons.push_back(fmt::format("{}: {}", item.submission.name, to_utf8(item.dropped)));
    else if (!item.cleared.empty())
      reasons.push_back(
          fmt::format("{}: {} ({})", item.submission.name, to_utf8(item.cleared), to_utf8(r->why)));
    else if (r && !r->why.empty())
      reasons.push_back(fmt::format("{}: {}", item.submission.name, to_utf8(r->why)));
  }
  t.out(table.text(t));
  for (const std::string& reason : reasons) t.out(reason);
  std::vector<std::string> counts;
  for (const auto& [state, count] : states) counts.push_back(fmt::format("{} {}", count, state));
  t.out(fmt::format("{} submissions: {}", outcome.items.size(), join(counts, ", ")));
  for (const std::string& name : outcome.ignored) t.out("not a submission: " + to_utf8(name));
  for (const std::string& problem : outcome.problems) t.out(one_line("not taken: " + problem));
  for (const std::string& name : outcome.gone)
    t.out(
        fmt::format("no longer among the submissions: {}; `capstone gradebook drop {} --reason TEXT` takes "
                    "its row out",
                    name, name));
  print_roster(outcome, t);
  t.out(outcome.csv.string());
  t.out("a suggestion is a starting point: the mentor's mark always wins");
}

void print_agreement(const workflows::SecondMarks& marks, const Terminal& t) {
  if (marks.pairs == 0) {
    t.out("no submission was marked by two mentors: capstone gradebook assign --double 5 --grader NAME");
    return;
  }
  Table table({"criterion", "pairs", "mean difference", "mean distance", "weighted kappa"},
              {false, true, true, true, true});
  for (const CriterionAgreement& a : marks.report.criteria)
    table.row({a.criterion, std::to_string(a.pairs),
               a.pairs ? fmt::format("{:+.1f}", a.mean_difference) : "-",
               a.pairs ? fmt::format("{:.1f}", a.mean_distance) : "-",
               a.kappa ? fmt::format("{:.2f}", *a.kappa) : "-"});
  t.out(table.text(t));
  if (!marks.report.reconcile.empty()) t.out("marks in different levels, the largest difference first:");
  for (const MarkPair& pair : marks.report.reconcile)
    t.out(to_utf8(fmt::format("  {} {}: {:g} by {}, {:g} by {}", pair.submission, pair.criterion, pair.first,
                              pair.first_grader, pair.second, pair.second_grader)));
}

}  // namespace capstone::cli
