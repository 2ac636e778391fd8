#pragma once
// What every command of a mentor's begins with: the folder that `grade` made.
#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/context.h"
#include "harness/course/gradebook/gradebook.h"
#include "harness/course/gradebook/sheets.h"

namespace capstone::cli {

struct OpenCohort {
  std::filesystem::path folder;
  Rubric rubric;
  Gradebook book;

  std::filesystem::path folder_of(const std::string& submission) const { return folder / "submissions" / submission; }
  /// The project as it was judged; empty: it could not be unpacked.
  std::filesystem::path project_of(const std::string& submission) const;
  /// score_sheet.json for mentors; an empty object where there is none (a failed submission).
  Json evidence_of(const std::string& submission) const;
  /// Texts that mentors use again, of comments.yaml.
  Result<Comments> comments() const { return read_comments(folder / "comments.yaml"); }
};

/// @error no gradebook there; damaged.
Result<OpenCohort> open_cohort(const Context& context, const std::string& folder);

/// --cohort, default graded/.
void add_cohort_option(CLI::App& command, std::string& cohort);

}  // namespace capstone::cli
