#pragma once
// Results that are better than they should be, and what the worklog makes of them.
#include <string>
#include <string_view>
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "rubric/worklog.h"

namespace capstone {

/// A version that passed gate one and that the judge labelled "needs an explanation".
struct Anomaly {
  enum class Told {
    kExplained,   ///< a paragraph after section 1 that names the version names a mechanism that fits each label
    kAdmitted,    ///< … or says that there is none that the author knows
    kPassedOver,  ///< neither
  };
  std::string version;
  std::vector<std::string> reasons;   ///< the labels, without "needs an explanation: "
  double percent_of_peak = 0;         ///< [%]; 0: not timed
  Told told = Told::kPassedOver;
};

/// Of the last measurement of each version, the human's first. Whether an explanation is *right* is for a reader to say.
std::vector<Anomaly> anomalies_in(const LedgerView& ledger, const Worklog& worklog);

/// "v3: 117 % of the peak of its precision class; tensor-core instructions (HMMA) in …".
std::string describe(const Anomaly& anomaly);

/// What a mentor should ask the author about it.
std::string question_about(const Anomaly& anomaly);

/// Whether a text names a version: "v1" stands in "v1 and v2", not in "v10".
bool names(std::string_view text, std::string_view version);

}  // namespace capstone
