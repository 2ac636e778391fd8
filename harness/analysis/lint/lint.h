#pragma once
// Checks whether a problem's definition is fit for judging: all checks that a mentor would otherwise do by
// hand.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/resources.h"
#include "harness/judge/judge.h"

namespace capstone {

/// One finding of lint.
struct LintCheck {
  enum class State { kOk, kFailed, kNotRun } state = State::kOk;
  std::string name;   ///< "loads", "statement", "memory", "cost", "hidden sizes", "tolerance", "triviality",
                      ///< "baseline", "reference"
  std::string what;   ///< the finding: the number, or what is wrong, or why the check was not run
  std::string where;  ///< file:line:column, or a file
  std::string hint;
};

/// Checks the definition in `folder`. If it does not load, the result is one failed check and nothing else is
/// run.
///
/// - loads: problem.yaml is read strictly, the oracle builds.
/// - statement: statement.md mentions every parameter.
/// - cost: FLOPs and bytes are positive numbers at every listed size and at 200 drawn ones.
/// - memory: a whole run at `measure` fits into 8 GB of GPU memory.
/// - hidden sizes: 200 draws satisfy `where` and the caps, are not empty, and give enough different sizes.
/// - tolerance: expected values rounded to the output's type pass; the next different lower precision fails.
/// - triviality: see triviality.h.
/// - baseline: baseline.cu builds for the CPU and agrees with the oracle over the judge's cases.
/// - reference: reference.py agrees with the oracle, if python3 has PyTorch.
/// @error a fault of the machine (no compiler, no CUDA headers, interrupted), or no such folder.
Result<std::vector<LintCheck>> lint_problem(const std::filesystem::path& folder, const Resources& resources,
                                            const Narration& say);

/// Whether all checks passed or were not run.
bool passes(const std::vector<LintCheck>& checks);

}  // namespace capstone
