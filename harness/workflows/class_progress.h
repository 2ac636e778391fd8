#pragma once
// Who needs help, from the check-ins of students.
#include <string>
#include <vector>

#include "harness/course/gradebook/progress.h"
#include "harness/workflows/cohort.h"

namespace capstone::workflows {

struct ClassProgressRequest {
  std::string cohort;                 ///< a folder that `grade` made; need not exist yet
  std::vector<std::string> checkins;  ///< files, and folders of them
  std::string roster;                 ///< CSV; empty: none
};

/// The check-ins in files and folders, sorted by path. Other files in a folder are skipped with a note; a
/// file that was named must be a check-in.
/// @error no check-ins there
Result<std::vector<CheckIn>> read_checkins(const Workspace& workspace, const std::vector<std::string>& places,
                                           const ProgressSink& progress);

/// Files in a folder that are not check-ins are skipped with a note; a file that was named must be one.
/// @error no check-ins there; a damaged roster.
Result<std::vector<ProgressRow>> class_progress(const ClassProgressRequest& request,
                                                const Workspace& workspace, const ProgressSink& progress);

/// The rows as progress.html in the cohort's folder, or in the current folder if there is no cohort. @return
/// its path
Result<std::filesystem::path> write_progress_page(const std::vector<ProgressRow>& rows,
                                                  const std::string& cohort, const Workspace& workspace);

}  // namespace capstone::workflows
