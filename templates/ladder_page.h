#pragma once
// The ladder view as a page: the time of each rung, and what each rung changed.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/analysis/ladder/ladder.h"
#include "harness/base/error.h"

namespace capstone {

/// A self-contained page.
/// @param recorded  the times were measured elsewhere; the page says so in a note
/// @error a template cannot be read.
Result<std::string> ladder_page(const std::vector<Ladder>& ladders, bool recorded,
                                const std::filesystem::path& templates);

}  // namespace capstone
