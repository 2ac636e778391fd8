#pragma once
// gzip in memory.
#include <string>
#include <string_view>

#include "harness/base/error.h"

namespace capstone {

/// The same bytes always give the same bytes. @error libarchive has no gzip here
Result<std::string> gzip(std::string_view bytes);

}  // namespace capstone
