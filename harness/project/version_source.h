#pragma once
#include <string>

#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"

namespace capstone {

/// The source of a version as it was judged. The project keeps it by its digest.
/// @error it is missing, or was changed since.
Result<std::string> source_of(const Project& project, const Measurement& version);

/// What was expected of a version and what came out: "expected 1.4x, FASTER 1.38x", "no expectation, WRONG".
std::string expectation_and_result(const LedgerView& ledger, const Measurement& version);

/// The unified diff from one version to another; both headers tell expectation and result. Empty: the same
/// source. @error as source_of()
Result<std::string> diff_of(const Project& project, const LedgerView& ledger, const Measurement& before,
                            const Measurement& after);

}  // namespace capstone
