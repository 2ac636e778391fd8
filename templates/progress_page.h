#pragma once
// Who needs help, on a page.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/course/gradebook/progress.h"

namespace capstone {

/// One self-contained file; what students wrote is text on it, never HTML. @param generated  UTC. @error the page template is missing.
Result<std::string> progress_page(const std::vector<ProgressRow>& rows, const std::string& generated, const std::filesystem::path& templates);

}  // namespace capstone
