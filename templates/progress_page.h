#pragma once
// A page that shows which students need help.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/course/gradebook/progress.h"

namespace capstone {

/// A self-contained page. The students' texts are always escaped.
/// @param generated  UTC
/// @error the page template is missing or broken.
Result<std::string> progress_page(const std::vector<ProgressRow>& rows, const std::string& generated,
                                  const std::filesystem::path& templates);

}  // namespace capstone
