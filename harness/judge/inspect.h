#pragma once
// The further builds of a candidate for the CPU: instrumented, they find what right outputs hide.
#include <filesystem>
#include <future>
#include <map>
#include <utility>

#include "harness/judge/gate_one.h"
#include "harness/runtime/build/build.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

/// A candidate after gate one.
struct InspectedCandidate {
  std::filesystem::path source;
  Measurement* into;  ///< gets what is found
};

/// Builds of candidates for the CPU that look closer than the first one. Each is made once, in the
/// background; the destructor waits for those that have begun.
class CloserBuilds {
 public:
  /// All three must outlive this object.
  CloserBuilds(const Problem& problem, const Resources& resources, const Sandbox& sandbox)
      : problem_(problem), resources_(resources), sandbox_(sandbox) {}
  /// Begins the build, if it has not begun yet. `label` is for messages: "human".
  std::shared_future<Result<EmulatedArtifact>> begin(const std::filesystem::path& source,
                                                     const std::string& label, BuildVariant variant);
  /// Begins both instrumented builds, so that they are made while gate one runs.
  void begin_instrumented(const std::filesystem::path& source, const std::string& label);

 private:
  const Problem& problem_;
  const Resources& resources_;
  const Sandbox& sandbox_;
  std::map<std::pair<std::filesystem::path, BuildVariant>, std::shared_future<Result<EmulatedArtifact>>>
      builds_;
};

struct InspectSetup {
  const Problem* problem;
  const Oracle* oracle;
  CloserBuilds* builds;
  const Sandbox* sandbox;
  std::chrono::milliseconds run_timeout;  ///< of one run in the uninstrumented build
  Narration say;
  std::optional<CasePlan> replay;  ///< this case instead of plan_instrumented()
};

/// Builds every candidate once more with each instrument, all at the same time, and runs the cases of
/// plan_instrumented(). CaseResult::build names the instrument: "asan". `passed`: their outputs were right so
/// far; they get the cases, the verdict where something is found, and a label where a build cannot be made.
/// @error the machine's fault, or interrupted.
Result<void> inspect(const InspectSetup& setup, const std::vector<InspectedCandidate>& passed);

/// Says why a candidate failed gate one, where a build for the CPU can tell: runs the failed case, where it
/// is small enough, and small sizes with each instrument, and where the result is not a number, stops at the
/// first operation that makes one. What is found becomes the first failed case's problem, place and hint;
/// what was seen in its outputs stays in its diagnosis. The verdict stays as it is.
/// @error the machine's fault, or interrupted.
Result<void> name_causes(const InspectSetup& setup, const std::vector<InspectedCandidate>& failed);

/// Sizes for builds that run some ten times slower: the cheapest under `check`, ragged ones among them, and
/// one that launches many blocks.
/// @error a cost that does not evaluate.
Result<std::vector<CasePlan>> plan_instrumented(const Problem& problem);

}  // namespace capstone
