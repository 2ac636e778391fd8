#pragma once
// reference.py against the oracle.
#include "harness/check/oracle.h"
#include "harness/lint/lint.h"

namespace capstone {

/// Runs reference.py with PyTorch in float64 over the sizes under `check` and compares its outputs with the oracle's
/// within the problem's tolerance. Not run where there is no python3 or no PyTorch.
/// @param scratch  an empty folder for the tensors
/// @error the machine's fault.
Result<LintCheck> check_reference(const Problem& problem, const Oracle& oracle, const Resources& resources,
                                  const std::filesystem::path& scratch);

}  // namespace capstone
