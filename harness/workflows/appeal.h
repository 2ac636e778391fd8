#pragma once
// `appeal`: everything about one submission, and judging it again.
#include <string>
#include <vector>

#include "harness/course/result.h"
#include "harness/workflows/cohort.h"

namespace capstone::workflows {

struct AppealFacts {
  std::string name;
  SubmissionResult result;
  std::vector<GradebookRow> rows;    ///< of its members
  std::vector<Measurement> claimed;  ///< what the student's ledger says about the sources that were handed in
  std::vector<HistoryEntry> history;
  std::filesystem::path feedback;  ///< the folder with verdict.json
};
/// @error no such submission.
Result<AppealFacts> appeal_facts(OpenCohort& cohort, const std::string& submission);

struct Rejudgement {
  SubmissionResult before, now;
};
/// Judges the files of a submission again and enters it into the history. The result that counts does not
/// change.
/// @error what was handed in cannot be judged.
Result<Rejudgement> rejudge(OpenCohort& cohort, const std::string& submission, const JudgeOptions& options,
                            const Workspace& workspace, const ProgressSink& progress);

}  // namespace capstone::workflows
