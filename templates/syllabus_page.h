#pragma once
// The mentor's sheets of the course's sessions as one page: a road on top, then one sheet for each session.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/analysis/plan/sheet.h"

namespace capstone {

/// A self-contained page. The road on top has all sessions; those with a sheet are links to it.
/// @error a template cannot be read.
Result<std::string> syllabus_page(const Course& course, const std::vector<SessionSheet>& sheets,
                                  const std::filesystem::path& templates);

}  // namespace capstone
