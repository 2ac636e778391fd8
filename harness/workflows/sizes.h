#pragma once
// Sizes as a user types them.
#include <string>

#include "harness/base/error.h"
#include "harness/model/problem.h"

namespace capstone::workflows {

/// "rows=64,cols=512"; sizes that the text does not name stay as in `sizes`.
/// @error an unknown size; not a number; sizes that the problem does not allow.
Result<Sizes> parse_sizes(const Problem& problem, Sizes sizes, const std::string& text);

}  // namespace capstone::workflows
