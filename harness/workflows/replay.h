#pragma once
// One recorded case again, with the source as it is now. Nothing is recorded.
#include <string>

#include "harness/workflows/judge_and_record.h"

namespace capstone::workflows {

struct ReplayOutcome {
  std::string version;                    ///< of the recorded measurement
  CaseResult recorded;                    ///< the case as it was recorded
  Sizes sizes;                            ///< of the case
  std::vector<Measurement> measurements;  ///< one
};

/// Runs one case of a measurement again.
/// @param wanted  the case; empty: the first that failed, else the first there is
/// @error no such case: the hint lists those that failed.
Result<ReplayOutcome> replay_case(const Project& project, const Measurement& recorded,
                                  const std::filesystem::path& source, const std::string& wanted,
                                  const JudgeOptions& options, const Workspace& workspace,
                                  const ProgressSink& progress);

/// One case of the last measurement of "human" or "llm" in the project in the current folder.
Result<ReplayOutcome> replay_last(const std::string& candidate, const std::string& wanted,
                                  const JudgeOptions& options, const Workspace& workspace,
                                  const ProgressSink& progress);

struct ReplayVerdictRequest {
  std::filesystem::path file;  ///< the verdict.json that came with a mentor's feedback
  std::string wanted;          ///< the case; empty: the first that failed
  std::string candidate;       ///< "human" or "llm"; empty: the first that failed
  JudgeOptions judge;
};
/// A case that failed on the mentor's machine, in the project in the current folder.
/// @error not a verdict; a verdict about another problem; no such candidate in it.
Result<ReplayOutcome> replay_verdict(const ReplayVerdictRequest& request, const Workspace& workspace,
                                     const ProgressSink& progress);

}  // namespace capstone::workflows
