#pragma once
// One submission, judged afresh: unpacked, verified, built, judged, compared with its claims, scored. `grade` runs it in a
// process of its own for each, so that none can take the batch along.
#include <filesystem>
#include <string>

#include "cli/recording.h"
#include "cli/context.h"
#include "harness/base/json.h"
#include "harness/course/result.h"

namespace capstone::cli {

/// What the process is told: the submission's path as its argument (which need not be UTF-8), the rest as JSON on its standard
/// input.
struct GradingTask {
  Submission submission;
  std::filesystem::path folder;    ///< of this submission: its files go there, result.json last
  std::filesystem::path rubric;
  JudgeOptions judge;
};
void to_json(Json&, const GradingTask&);
void from_json(const Json&, GradingTask&);

/// Everything that a result depends on but the submission and its problem.
GradingInputs common_inputs(const Context& context, const JudgeOptions& options, const std::string& rubric_digest);

/// The mentor's own problem of that id. Never by path: a submission that names one would choose the code that judges it.
/// @error no such problem; not an id.
Result<Problem> mentors_problem(const Context& context, const std::string& id);

/// Judges, and writes score_sheet.*, feedback/ and then result.json below task.folder.
/// @error only the machine's: the disk is full, interrupted. Whatever is wrong with the submission is its result.
Result<SubmissionResult> grade_submission(const Context& context, const GradingTask& task);

/// The stage that a line of narration belongs to.
GradingState state_of_narration(std::string_view line);

}  // namespace capstone::cli
