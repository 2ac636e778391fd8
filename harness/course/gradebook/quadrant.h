#pragma once
// Kernels in front of the two gates: correct or not, faster or not.
#include <map>
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// One judged kernel.
struct GateDot {
  std::string group, name;         ///< "by hand", "Quiet Warp"
  std::string gate_one, gate_two;  ///< labels: "PASS", "FASTER"; gate_two empty: not timed
};

/// The fields of the two gates. A kernel that is not correct is not timed, so the two lower fields are one.
enum class GateField {
  kFaster,     ///< correct and faster
  kNotFaster,  ///< correct; a tie or slower
  kWrong,      ///< gate one says no
  kUndecided,  ///< correct, but gate two has not decided: no GPU, or too much noise
};
GateField field_of(const GateDot& dot);

/// The kernels of a cohort, those by hand first, then those of their models and those made together.
/// @param names  people's names instead of pseudonyms, which are those of leaderboards()
std::vector<GateDot> dots_of_cohort(const std::vector<GradebookRow>& rows,
                                    const std::map<std::string, ResultSummary>& summaries, bool names);

}  // namespace capstone
