#pragma once
// What a ledger claims beside what was measured afresh.
#include <string>

#include "harness/base/json.h"
#include "harness/project/ledger/ledger.h"

namespace capstone {

enum class Agreement {
  kAgrees,
  kGateOneDiffers,   ///< the ledger says PASS and fresh inputs say otherwise, or the other way round
  kContradicts,      ///< a speedup beyond max(5 %, 3 standard errors) of the claimed one, measured under the same conditions
  kNotComparable,    ///< another GPU model, baseline or version, or nothing to compare: never evidence of dishonesty
  kNeverMeasured,    ///< this very source is not in the ledger
};
std::string_view name_of(Agreement agreement);   ///< "agrees", "gate one differs", "contradicts", "not comparable", "never measured"

struct Claim {
  std::string candidate;   ///< "human" or "llm"
  Agreement agreement = Agreement::kNotComparable;
  std::string text;         ///< one sentence with the numbers
};

/// Compares a fresh measurement with the ledger's of the same candidate and the very same source.
Claim compare_claim(const LedgerView& ledger, const Measurement& fresh);

void to_json(Json&, const Claim&);
void from_json(const Json&, Claim&);

}  // namespace capstone
