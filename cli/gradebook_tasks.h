#pragma once
// The longer tasks of `gradebook`, each a subcommand.
#include <string>

#include "cli/cohort.h"

namespace capstone::cli {

/// Blind copies for a second mentor below `out` (empty: COHORT/blind/GRADER).
Result<ExitCode> assign_blind_copies(const Context& context, OpenCohort& cohort, int count, const std::string& grader, const std::string& out);
/// Takes in every filled sheet below `folder`, all or nothing.
Result<ExitCode> merge_blind_copies(const Context& context, OpenCohort& cohort, const std::string& folder);
Result<ExitCode> show_agreement(const Context& context, const OpenCohort& cohort);

/// Compares kernels with each other, and each with what it may have begun from. Writes similarity.json and similarity.html into the cohort.
/// @param least  [%] shares below it are left out
Result<ExitCode> compare_kernels(const Context& context, OpenCohort& cohort, double least);

/// Who needs help, from check-ins in files and folders. @param cohort  a folder that `grade` made, or none yet; @param roster  a file; empty: not told
Result<ExitCode> show_progress(const Context& context, const std::string& cohort, const std::vector<std::string>& places, const std::string& roster, const std::string& format);

}  // namespace capstone::cli
