#pragma once
// An explanation as a page: the whole source as a heat map.
#include <filesystem>
#include <string>

#include "harness/base/error.h"
#include "harness/model/explanation.h"

namespace capstone {

/// A self-contained page.
/// @param source  the .cu file that was explained. Headers in the same folder are shown if lines in them were
///                counted.
/// @error a source file or a template cannot be read.
Result<std::string> explanation_page(const Explanation& explanation, const std::filesystem::path& source,
                                     const std::filesystem::path& templates);

}  // namespace capstone
