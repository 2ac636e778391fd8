#pragma once
// Compares what a ledger claims with a new measurement of the same source.
#include <string>

#include "harness/base/json.h"
#include "harness/project/ledger/ledger.h"

namespace capstone {

enum class Agreement {
  kAgrees,
  kGateOneDiffers,  ///< one of the ledger and the new judgement says PASS and the other does not
  /// Under the same conditions, the speedups differ by more than max(5 %, 3 standard errors).
  kContradicts,
  /// Different GPU model, baseline or version, or nothing to compare: no evidence of dishonesty.
  kNotComparable,
  kNeverMeasured,  ///< the ledger has no measurement of this source
};
/// "agrees", "gate one differs", "contradicts", "not comparable", "never measured".
std::string_view name_of(Agreement agreement);

struct Claim {
  std::string candidate;  ///< "human" or "llm"
  Agreement agreement = Agreement::kNotComparable;
  std::string text;  ///< one sentence with the numbers
};

/// Compares a new measurement with the ledger's last measurement of the same candidate and the same source.
Claim compare_claim(const LedgerView& ledger, const Measurement& fresh);

void to_json(Json&, const Claim&);
void from_json(const Json&, Claim&);

}  // namespace capstone
