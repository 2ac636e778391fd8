#pragma once
// `syllabus`: the sheets of sessions as a page.
#include <string>
#include <vector>

#include "harness/analysis/plan/sheet.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// The sheets as one self-contained page. @return its path
/// @error the file holds something else than a page; a template cannot be read.
Result<std::filesystem::path> write_syllabus_page(const Course& course,
                                                  const std::vector<SessionSheet>& sheets,
                                                  const std::string& file, const Workspace& workspace);

}  // namespace capstone::workflows
