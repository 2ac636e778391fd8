#pragma once
// Turns the counts of an observed run (harness/runtime/worker/protocol.md) into an explanation.
#include <filesystem>

#include "harness/judge/judge.h"
#include "harness/model/explanation.h"
#include "harness/runtime/sandbox/sandbox.h"
#include "harness/timing/device.h"

namespace capstone {

struct ExplainRequest {
  const Problem* problem = nullptr;
  std::filesystem::path source;  ///< the .cu
  Sizes sizes;
  std::optional<DevicePeaks> device;  ///< the device whose lower bound on time is modelled
  /// Shares, advice and the bound are those of the problem's measured size, where the counts grow by a rule
  /// (growth.h).
  bool at_measured = false;
};

/// Runs the source once on the emulator, observes every memory access, and explains the run. The caller fills
/// in `candidate`, `version` and `source` of the result.
/// @error the kernel does not build, crashes or is found to be wrong (a race …) at these sizes: exit code 1;
///   the CPU cannot run it: exit code 3.
Result<Explanation> explain(const ExplainRequest& request, const Resources& resources, const Narration& say);

/// The program that explain() runs, built with every access observed or found in the cache. @error as for
/// explain().
Result<std::filesystem::path> build_observed(const ExplainRequest& request, const Resources& resources,
                                             const Sandbox& sandbox);
/// Runs that program once and explains the run. @error as for explain().
Result<Explanation> explain_run(const std::filesystem::path& program, const ExplainRequest& request,
                                const Sandbox& sandbox);

/// Makes the explanation from a report, without running anything. The text of the lines is read from the
/// folder of the request's source.
/// @error the report does not follow the protocol.
Result<Explanation> interpret(const Json& report, const ExplainRequest& request);

/// The same of a whole program: every kernel that it launched. `compulsory_bytes` are those of the arrays.
Result<Explanation> interpret_program(const Json& report, const std::filesystem::path& source);

/// The predicted time: a lower bound for any kernel with these counts, at the problem's measured size. What
/// the problem has to move comes from its cost model there. FLOPs and L1 passes grow by the rule of growth.h;
/// where it does not hold, as the problem's FLOPs do (its bytes, where it has none).
Result<ModelledFloor> modelled_floor(const Explanation& explanation, const Problem& problem,
                                     const DevicePeaks& device);

}  // namespace capstone
