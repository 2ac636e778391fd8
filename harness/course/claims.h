#pragma once
// Compares what a ledger claims with a new measurement of the same source.
#include <string>

#include "harness/base/json.h"
#include "harness/project/ledger/ledger.h"

namespace capstone {

enum class Agreement {
  kAgrees,
  kGateOneDiffers,  ///< one of the ledger and the new judgement says PASS and the other does not
  /// The claim is no number, or the speedups differ: by more than three standard errors (5 % at least, 25 %
  /// at most) under the same conditions, by more than half with another driver, nvcc or capstone.
  kContradicts,
  /// Different GPU model, baseline or problem, an interval too wide to be a claim, or nothing to compare: no
  /// evidence of dishonesty. The text gives both numbers.
  kNotComparable,
  kNeverMeasured,  ///< the ledger has no measurement of this source
};
/// "agrees", "gate one differs", "contradicts", "not comparable", "never measured".
std::string_view name_of(Agreement agreement);

/// "2.08x [2.01, 2.15]"
std::string text_of(const Interval& speedup);

struct Claim {
  std::string candidate;  ///< one of kCandidates
  Agreement agreement = Agreement::kNotComparable;
  std::string text;  ///< one sentence with the numbers
};

/// Compares a new measurement with the ledger's last measurement of the same candidate and the same source.
Claim compare_claim(const LedgerView& ledger, const Measurement& fresh);

void to_json(Json&, const Claim&);
void from_json(const Json&, Claim&);

}  // namespace capstone
