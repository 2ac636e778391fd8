#pragma once
#include <string>

#include "harness/project/ledger/ledger.h"

namespace capstone {

/// The name under which a source is measured: "v1", "v2" … for the human, "attempt-1" … for the model,
/// "t1" … for what they made together. A source that was measured before keeps its name; new content gets the
/// number after the highest one.
///
/// @param candidate  one of kCandidates
/// @param sha256     digest of the source, 64 hexadecimal digits
Result<std::string> next_version(const LedgerView& ledger, const std::string& candidate,
                                 const std::string& sha256);

}  // namespace capstone
