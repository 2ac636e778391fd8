#pragma once
// Compares reference.py with the oracle.
#include "harness/analysis/lint/lint.h"
#include "harness/correctness/oracle.h"

namespace capstone {

/// Runs reference.py with PyTorch in float64 at the sizes under `check` and compares its outputs with the
/// oracle's. Both compute in float64, so they may differ by kCrossCheck times an element's scale and its
/// value. Not run if no python3 on PATH has PyTorch.
/// @param scratch  an empty folder for the tensors
/// @error a fault of the machine.
inline constexpr double kCrossCheck = 1e-12;
Result<LintCheck> check_reference(const Problem& problem, const Oracle& oracle, const Resources& resources,
                                  const std::filesystem::path& scratch);

}  // namespace capstone
