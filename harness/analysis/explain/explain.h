#pragma once
// From the counts of an observed run (harness/runtime/worker/protocol.md) to an explanation in words.
#include <filesystem>

#include "harness/judge/judge.h"
#include "harness/model/explanation.h"
#include "harness/timing/device.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

struct ExplainRequest {
  const Problem* problem = nullptr;
  std::filesystem::path source;               ///< the .cu
  Sizes sizes;
  std::optional<DevicePeaks> device;          ///< whose lower bound on time is modelled
};

/// Runs the source once on the emulator, every access observed, and explains what it did. `candidate`, `version` and `source`
/// of the result are the caller's to fill in.
/// @error the kernel does not build, crashes or is found to be wrong (a race …) at these sizes: exit code 1; the CPU cannot run
///        it: exit code 3.
Result<Explanation> explain(const ExplainRequest& request, const Resources& resources, const Narration& say);

/// The program that explain() runs: built with every access observed, or found in the cache. @error as explain()'s.
Result<std::filesystem::path> build_observed(const ExplainRequest& request, const Resources& resources, const Sandbox& sandbox);
/// One run of it, and its explanation. @error as explain()'s
Result<Explanation> explain_run(const std::filesystem::path& program, const ExplainRequest& request, const Sandbox& sandbox);

/// The explanation of a report, without running anything. The text of the lines is read from the folder of the request's source.
/// @error the report is not what the protocol says.
Result<Explanation> interpret(const Json& report, const ExplainRequest& request);

/// What no kernel with these counts can be faster than.
ModelledFloor modelled_floor(const Explanation& explanation, const DevicePeaks& device, Precision precision);

}  // namespace capstone
