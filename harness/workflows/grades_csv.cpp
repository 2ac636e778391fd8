// grades.csv: everything about a cohort on one sheet.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/csv.h"
#include "harness/base/text.h"
#include "harness/workflows/grade_cohort.h"

namespace capstone::workflows {
namespace {

std::string names_of(const std::vector<Person>& people) {
  std::vector<std::string> names;
  for (const Person& person : people) names.push_back(person.name);
  return join(names, "; ");
}

// Gate one, gate two and speedup of one candidate.
void add_verdict(const Measurement* m, std::vector<std::string>& cells) {
  const bool timed = m && m->gate_two != GateTwo::kNotJudged && m->measured && m->measured->speedup;
  cells.push_back(!m ? "" : m->judged() ? std::string(label_of(m->gate_one)) : "not judged here");
  cells.push_back(m ? std::string(label_of(m->gate_two)) : "");
  cells.push_back(timed ? fmt::format("{:.4f}", m->measured->speedup->point) : "");
}

std::string notes_of(const SubmissionResult& r) {
  std::vector<std::string> notes;
  if (!r.why.empty()) notes.push_back(r.why);
  for (const std::string& finding : r.all_findings())
    if (!r.why.starts_with(finding)) notes.push_back(finding);
  for (const Claim& claim : r.claims)
    if (claim.agreement != Agreement::kAgrees) notes.push_back(claim.candidate + ": " + claim.text);
  for (const std::string& version : r.left_out) notes.push_back("the worklog leaves out " + version);
  notes.insert(notes.end(), r.notes.begin(), r.notes.end());
  return join(notes, "; ");
}

std::string row_of(const GradeItem& item, const Rubric& rubric) {
  static const SubmissionResult none;
  const SubmissionResult& r = item.result ? *item.result : none;
  std::vector<std::string> cells{item.submission.name,
                                 names_of(r.members),
                                 r.problem,
                                 item.dropped.empty() ? std::string(name_of(r.state)) : "dropped",
                                 std::string(name_of(r.fault)),
                                 item.lateness};
  for (const char* candidate : {"human", "llm"}) add_verdict(r.of(candidate), cells);
  for (const Criterion& criterion : rubric.criteria) {
    auto mark = std::find_if(r.suggested.begin(), r.suggested.end(),
                             [&](const SuggestedMark& s) { return s.criterion == criterion.id; });
    cells.push_back(mark == r.suggested.end() ? "" : fmt::format("{:g}", mark->points));
  }
  cells.push_back(r.suggested.empty() ? "" : fmt::format("{:g}", r.suggested_total()));
  std::string notes = notes_of(r);
  for (const auto& [what, text] :
       {std::pair{"dropped: ", item.dropped}, std::pair{"cleared: ", item.cleared}})
    if (!text.empty()) notes = what + text + (notes.empty() ? "" : "; " + notes);
  cells.push_back(notes);
  return csv_row(cells);
}

}  // namespace

std::string grades_csv(const std::vector<GradeItem>& items, const Rubric& rubric) {
  std::vector<std::string> heading{"name",          "people",       "problem",        "state",
                                   "fault",         "late",         "human_gate_one", "human_gate_two",
                                   "human_speedup", "llm_gate_one", "llm_gate_two",   "llm_speedup"};
  for (const Criterion& criterion : rubric.criteria) heading.push_back("suggested_" + criterion.id);
  heading.insert(heading.end(), {"suggested_total", "notes"});
  std::string text = csv_row(heading);
  for (const GradeItem& item : items) text += row_of(item, rubric);
  return text;
}

}  // namespace capstone::workflows
