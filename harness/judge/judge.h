#pragma once
// The judge: owns seeds, expected values, tolerances and verdicts. Never loads a submission, never holds a GPU context.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/correctness/cases.h"
#include "harness/judge/options.h"
#include "harness/model/record.h"
#include "harness/runtime/sandbox/sandbox.h"
#include "harness/model/problem.h"

namespace capstone {

/// One source to judge.
struct Candidate {
  std::string name;               ///< "human", "llm"
  std::filesystem::path source;    ///< the .cu, or a .py with ModelNew
};

struct JudgeRequest {
  const Problem* problem = nullptr;
  std::vector<Candidate> candidates;
  JudgeOptions options;
  std::filesystem::path baseline;  ///< CUDA: the native baseline; empty: the problem's own
  int restarts = 5;                ///< CUDA: of every process, at least; fewer say less about what varies from process to process
  bool timing = true;              ///< false: gate one only
  int arms = 1;                    ///< CUDA: candidates that each candidate becomes in gate two, a measurement each
  std::optional<CasePlan> replay;  ///< only this case instead of the planned ones, and no timing
};

/// What the judge is doing, for a progress line. Called from the judging thread.
using Narration = std::function<void(const std::string&)>;

/// Judges every candidate: build → gate one → gate two. One Measurement a candidate (`arms` of them), in order; a submission's own failure is in
/// its Measurement, never an Error.
/// @error the machine's fault: no compiler, no headers, a broken oracle, interrupted.
Result<std::vector<Measurement>> judge(const JudgeRequest& request, const Resources& resources, const Narration& say);

/// Facts about the first visible GPU, from the driver's nvidia-smi; no context is made.
struct GpuIdentity {
  std::string name, uuid, driver, compute_capability;  ///< "9.0"
  double memory_bytes = 0;
  /// nvcc's name for it, with the architecture-specific suffix where there is one: "sm_90a".
  std::string arch() const;
};
/// @error no NVIDIA GPU or driver here.
Result<GpuIdentity> find_gpu(const Resources& resources);

/// What CUDA_VISIBLE_DEVICES names each GPU that may be used here; empty: there is none.
std::vector<std::string> visible_gpus(const Resources& resources);

/// The backend that kAuto means here, and why: a GPU and nvcc → cuda; else emulated.
struct BackendChoice {
  Backend backend;
  std::string because;   ///< empty for cuda; else "no NVIDIA GPU here"
};
BackendChoice choose_backend(Backend wanted, const Resources& resources);

}  // namespace capstone
