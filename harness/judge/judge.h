#pragma once
// The judge: owns seeds, expected values, tolerances and verdicts. Never loads a submission, never holds a
// GPU context.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/correctness/cases.h"
#include "harness/judge/events.h"
#include "harness/judge/gpu.h"
#include "harness/judge/options.h"
#include "harness/model/problem.h"
#include "harness/model/record.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

/// One source to judge.
struct Candidate {
  std::string name;              ///< "human", "llm"
  std::filesystem::path source;  ///< the .cu, or a .py with ModelNew
};

/// Whether candidates are checked 200 times more, off the clock, after they were timed.
enum class ExtraChecks {
  kNever,      ///< of the tool's own kernels
  kSometimes,  ///< at random: no candidate can know
  kAlways
};

struct JudgeRequest {
  const Problem* problem = nullptr;
  std::vector<Candidate> candidates;
  JudgeOptions options;
  std::filesystem::path baseline;  ///< CUDA: the native baseline; empty: the problem's own
  int restarts =
      3;  ///< CUDA: of every process, at least; fewer say less about what varies from process to process
  bool timing = true;                                  ///< false: gate one only
  bool nvcc = true;  ///< false: on the CPU nvcc does not look at the source, too
  ExtraChecks extra_checks = ExtraChecks::kSometimes;  ///< CUDA
  bool name_causes = true;  ///< of a failed candidate, with instrumented builds for the CPU
  int arms = 1;             ///< CUDA: candidates that each candidate becomes in gate two, a measurement each
  std::optional<CasePlan> replay;  ///< only this case instead of the planned ones, and no timing
};

/// Judges every candidate: build → gate one → gate two. One Measurement a candidate (`arms` of them), in
/// order; a submission's own failure is in its Measurement, never an Error.
/// @error the machine's fault: no compiler, no headers, a broken oracle, interrupted.
Result<std::vector<Measurement>> judge(const JudgeRequest& request, const Resources& resources,
                                       const Narration& say);

}  // namespace capstone
