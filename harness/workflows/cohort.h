#pragma once
// The folder that `grade` made, which every command for mentors opens first.
#include <filesystem>
#include <string>

#include "harness/course/gradebook/gradebook.h"
#include "harness/course/gradebook/sheets.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct OpenCohort {
  std::filesystem::path folder;
  Rubric rubric;
  Gradebook book;

  std::filesystem::path folder_of(const std::string& submission) const {
    return folder / "submissions" / submission;
  }
  /// The project as it was judged; empty: it could not be unpacked.
  std::filesystem::path project_of(const std::string& submission) const;
  /// score_sheet.json for mentors, empty if it does not exist (a failed submission); and `places`, a list of
  /// lines that name the submission's worklog, score sheet and kernel.
  Json evidence_of(const std::string& submission) const;
  /// The reusable comments of comments.yaml.
  Result<Comments> comments() const { return read_comments(folder / "comments.yaml"); }
};

/// A grader's name as the name of a folder: different for different graders.
std::string file_name_of(const std::string& grader);

/// @error no gradebook there; damaged.
Result<OpenCohort> open_cohort(const Workspace& workspace, const std::string& folder);

}  // namespace capstone::workflows
