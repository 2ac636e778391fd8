#pragma once
// Bytes in the forms that pages need. Private to this library.
#include <string>
#include <string_view>

#include "harness/base/encode.h"

namespace capstone {

/// One part of a URL's path: letters, digits and . _ - ~ stay.
std::string percent_encoded(std::string_view text);

}  // namespace capstone
