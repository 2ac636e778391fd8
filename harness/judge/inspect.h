#pragma once
// The further builds of a candidate for the CPU: instrumented, they find what right outputs hide.
#include <filesystem>

#include "harness/judge/gate_one.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

/// A candidate whose outputs were right so far.
struct PassedCandidate {
  std::filesystem::path source;
  Measurement*
      into;  ///< gets the cases, the verdict when something is found, a label when a build cannot be made
};

struct InspectSetup {
  const Problem* problem;
  const Oracle* oracle;
  const Resources* resources;
  const Sandbox* sandbox;
  std::chrono::milliseconds run_timeout;  ///< of one run in the uninstrumented build
  Narration say;
  std::optional<CasePlan> replay;  ///< this case instead of plan_instrumented()
};

/// Builds every candidate once more with each instrument, all at the same time, and runs the cases of
/// plan_instrumented(). CaseResult::build names the instrument: "asan".
/// @error the machine's fault, or interrupted.
Result<void> inspect(const InspectSetup& setup, const std::vector<PassedCandidate>& passed);

/// Sizes for builds that run some ten times slower: the cheapest under `check`, ragged ones among them, and
/// one that launches many blocks.
/// @error a cost that does not evaluate.
Result<std::vector<CasePlan>> plan_instrumented(const Problem& problem);

}  // namespace capstone
