#pragma once
// reference.py against the oracle.
#include "harness/correctness/oracle.h"
#include "harness/analysis/lint/lint.h"

namespace capstone {

/// Runs reference.py with PyTorch in float64 over the sizes under `check` and compares its outputs with the oracle's: both
/// compute in float64, so they may differ by kCrossCheck of an element's scale and of its value. Not run where no python3 on PATH has
/// PyTorch.
/// @param scratch  an empty folder for the tensors
/// @error the machine's fault.
inline constexpr double kCrossCheck = 1e-12;
Result<LintCheck> check_reference(const Problem& problem, const Oracle& oracle, const Resources& resources,
                                  const std::filesystem::path& scratch);

}  // namespace capstone
