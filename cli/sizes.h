#pragma once
// Sizes as a user types them.
#include <string>

#include "harness/base/error.h"
#include "harness/model/problem.h"

namespace capstone::cli {

/// "rows=64,cols=512"; what is not said stays as in `sizes`. @error no such size, no number, or sizes that the problem does not allow.
Result<Sizes> parse_sizes(const Problem& problem, Sizes sizes, const std::string& text);

}  // namespace capstone::cli
