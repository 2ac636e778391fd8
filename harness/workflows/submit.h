#pragma once
// `submit` and `checkin`: what a student hands in.
#include <optional>
#include <string>

#include "harness/project/archive/submission.h"
#include "harness/project/checkin.h"
#include "harness/workflows/workspace.h"
#include "rubric/finding.h"

namespace capstone::workflows {

/// What would be handed in: files, what is left out, findings. Writes nothing.
/// @param allow_secrets  pack files that look like keys
Result<SubmissionPlan> plan_submission_here(bool allow_secrets, const Workspace& workspace);

/// What is missing or contradictory in the project: what `check` finds beyond advice, and a report that is
/// missing or stale.
Result<std::vector<Finding>> open_points_here(const Workspace& workspace);

/// Writes the archive of a plan that was made with the same `allow_secrets`.
/// @param out  a file; empty: named after the project
/// @error the plan has a file that looks like a key, and `allow_secrets` is false.
Result<Receipt> submit(const SubmissionPlan& plan, bool allow_secrets, const std::string& out,
                       const Workspace& workspace);

/// The first finding that looks like a key; null: none.
const SubmissionFinding* first_secret(const SubmissionPlan& plan);

struct CheckInOutcome {
  CheckIn checkin;
  std::filesystem::path file;
};
/// Records a check-in and writes its file. @param stuck  where the student is stuck; may be empty
/// @param out  the file; empty: checkin-ID-PROBLEM.json in the current folder
Result<CheckInOutcome> check_in_here(const std::string& stuck, const std::string& out,
                                     const Workspace& workspace);

}  // namespace capstone::workflows
