#pragma once
// Whether a problem's definition can be judged by: every check that a mentor would otherwise do by hand.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/resources.h"
#include "harness/judge/judge.h"

namespace capstone {

/// One line of what lint found.
struct LintCheck {
  enum class State { kOk, kFailed, kNotRun } state = State::kOk;
  std::string name;    ///< "loads", "statement", "memory", "cost", "hidden sizes", "tolerance", "triviality", "baseline", "reference"
  std::string what;    ///< what was found: the number, or what is wrong, or why it was not run
  std::string where;   ///< file:line:column, or a file
  std::string hint;
};

/// Checks the definition in `folder`. A definition that does not load gives one failed check, and nothing else is run.
///
/// - loads: problem.yaml is read strictly, the oracle builds.
/// - statement: statement.md mentions every parameter.
/// - cost: FLOPs and bytes are positive numbers at every listed size and at 200 drawn ones.
/// - memory: a whole run at `measure` fits 8 GB of GPU memory.
/// - hidden sizes: 200 draws obey `where` and the caps, are not empty, and are not always the same few.
/// - tolerance: expected values rounded to the output's type pass; the next different lower precision does not.
/// - triviality: see triviality.h.
/// - baseline: baseline.cu builds for the CPU and agrees with the oracle over the judge's cases.
/// - reference: reference.py agrees with the oracle, where python3 has PyTorch.
/// @error the machine's fault (no compiler, no CUDA headers, interrupted), or no such folder.
Result<std::vector<LintCheck>> lint_problem(const std::filesystem::path& folder, const Resources& resources, const Narration& say);

/// Whether no check failed.
bool passes(const std::vector<LintCheck>& checks);

}  // namespace capstone
