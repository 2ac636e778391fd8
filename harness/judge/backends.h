#pragma once
// The two ways to judge; judge() chooses.
#include <chrono>

#include "harness/base/files.h"
#include "harness/judge/judge.h"

namespace capstone {

Result<std::vector<Measurement>> judge_emulated(const JudgeRequest& request, const Resources& resources,
                                                const Narration& say, const std::string& why_not_cuda);
Result<std::vector<Measurement>> judge_cuda(const JudgeRequest& request, const Resources& resources, const Narration& say);

/// One clock at a time on a GPU, whoever asks: two at once would slow each other down. Waits. @error interrupted; the lock file cannot be made.
Result<FileLock> take_gpu(const GpuIdentity& gpu, const Narration& say);

/// What gate one shall run: fresh cases, or the one to be replayed. Called after every build.
Result<std::vector<CasePlan>> cases_for(const JudgeRequest& request, const DrawLimits& limits);
/// Whether anything is timed.
bool is_timed(const JudgeRequest& request);

/// How long one launch of gate one may take.
std::chrono::milliseconds run_timeout(const JudgeRequest& request);
Json host_environment(const Resources& resources);
Measurement blank_measurement(const JudgeRequest& request, const Candidate& candidate, const Sandbox& sandbox,
                              const Json& environment);

}  // namespace capstone
