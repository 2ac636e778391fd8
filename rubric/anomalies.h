#pragma once
// Results that are better than they should be, and whether the worklog explains them.
#include <string>
#include <string_view>
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "rubric/worklog.h"

namespace capstone {

/// A version that passed gate one and carries the judge's label "needs an explanation".
struct Anomaly {
  enum class Told {
    kExplained,   ///< for each label, a paragraph after section 1 names the version and a mechanism that fits
    kAdmitted,    ///< a paragraph names the version and says that the author knows no explanation
    kPassedOver,  ///< neither
  };
  std::string version;
  std::vector<std::string> reasons;  ///< the labels, without the prefix "needs an explanation: "
  double percent_of_peak = 0;        ///< [%]; 0 when the version was not timed
  Told told = Told::kPassedOver;
};

/// The anomalies in the last measurement of each version, the human's versions first. The machine only
/// detects that an explanation exists; a reader decides whether it is correct.
std::vector<Anomaly> anomalies_in(const LedgerView& ledger, const Worklog& worklog);

/// One line, for example: "v3: 117 % of the peak of its precision class; below the memory floor".
std::string describe(const Anomaly& anomaly);

/// The question that a mentor should ask the author about the anomaly.
std::string question_about(const Anomaly& anomaly);

/// Whether a text names a version as a whole word: "v1" occurs in "v1 and v2", but not in "v10".
bool names(std::string_view text, std::string_view version);

}  // namespace capstone
