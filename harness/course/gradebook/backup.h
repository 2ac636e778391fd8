#pragma once
// Copies of a gradebook that are whole although it is in use, and a check of what it holds.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

/// Copies the gradebook of a cohort with SQLite's online backup. Others may read and write meanwhile; the
/// copy holds one moment. It appears under its name only when it is whole and checked.
/// @param file  must not exist. @error it exists; no gradebook there; the disk.
Result<void> back_up_gradebook(const std::filesystem::path& cohort, const std::filesystem::path& file);

struct GradebookCheck {
  std::vector<std::string> problems;  ///< empty: it is whole
  long submissions = 0, marks = 0;
};
/// Checks a gradebook file: SQLite's integrity check, and that every row refers to one that exists. Changes
/// nothing.
/// @error cannot be read; not a gradebook.
Result<GradebookCheck> verify_gradebook(const std::filesystem::path& file);

}  // namespace capstone
