#pragma once
// Grading of one submission: unpack, verify, build, judge, compare with its claims, score. `grade` runs it in
// a process for each submission, so that a crash affects only one.
#include <filesystem>
#include <functional>
#include <string>

#include "harness/base/json.h"
#include "harness/course/result.h"
#include "harness/judge/options.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// What the process is told: the submission's path as its argument (which need not be UTF-8), the rest as
/// JSON on its standard input.
struct GradingTask {
  Submission submission;
  std::filesystem::path folder;  ///< of this submission: its files go there, result.json last
  std::filesystem::path rubric;
  JudgeOptions judge;
  std::vector<std::string> cohort_findings;  ///< what other submissions and check-ins say about this one
};
void to_json(Json&, const GradingTask&);
void from_json(const Json&, GradingTask&);

/// Everything that a result depends on, except the submission and its problem.
GradingInputs common_inputs(const Workspace& workspace, const JudgeOptions& options,
                            const std::string& rubric_digest);

/// Where the grading of one submission stands.
struct GradingStatus {
  GradingState state = GradingState::kQueued;
  std::string text;  ///< what is being done
};
using GradingSink = std::function<void(const GradingStatus&)>;

/// Judges, and writes score_sheet.*, feedback/ and then result.json below task.folder.
/// @error only the machine's: the disk is full, interrupted. Whatever is wrong with the submission is its
/// result.
Result<SubmissionResult> grade_submission(const GradingTask& task, const Workspace& workspace,
                                          const GradingSink& status);

/// A status as one line of JSON: `grade-one` writes them to standard error, `grade` reads them.
std::string status_line(const GradingStatus& status);
/// @return kQueued for a line that is not a status
GradingStatus parse_status(const std::string& line);

}  // namespace capstone::workflows
