#pragma once
#include <string>

#include "harness/base/json.h"

namespace capstone {

/// "rows=64, cols=512": the sizes of a record, as to_string(Sizes) writes them. Empty where there are none.
std::string sizes_text(const Json& sizes);

}  // namespace capstone
