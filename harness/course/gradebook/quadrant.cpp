#include "harness/course/gradebook/quadrant.h"

#include "harness/course/gradebook/shown_names.h"

namespace capstone {

GateField field_of(const GateDot& dot) {
  if (dot.gate_one != label_of(GateOne::kPassed)) return GateField::kWrong;
  if (dot.gate_two == label_of(GateTwo::kFaster)) return GateField::kFaster;
  if (dot.gate_two == label_of(GateTwo::kTie) || dot.gate_two == label_of(GateTwo::kSlower))
    return GateField::kNotFaster;
  return GateField::kUndecided;
}

std::vector<GateDot> dots_of_cohort(const std::vector<GradebookRow>& rows,
                                    const std::map<std::string, ResultSummary>& summaries, bool names) {
  const std::map<std::string, std::string> shown = shown_names(rows, summaries, names);
  std::vector<GateDot> dots;
  for (const auto& [candidate, group] : {std::pair{"human", "by hand"}, std::pair{"llm", "by their model"},
                                         std::pair{"together", "made together"}})
    for (const auto& [submission, name] : shown)
      if (const Outcome* outcome = summaries.at(submission).of(candidate))
        dots.push_back({group, name, outcome->gate_one, outcome->gate_two});
  return dots;
}

}  // namespace capstone
