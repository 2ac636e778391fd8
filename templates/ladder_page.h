#pragma once
// Ladders as a page: the ladder view, and what each rung changed.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/analysis/ladder/ladder.h"

namespace capstone {

/// A page that needs nothing else. @param recorded  measured elsewhere: a watermark says so
/// @error a template cannot be read.
Result<std::string> ladder_page(const std::vector<Ladder>& ladders, bool recorded, const std::filesystem::path& templates);

}  // namespace capstone
