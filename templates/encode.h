#pragma once
// Encodings that pages need. Private to this library.
#include <string>
#include <string_view>

#include "harness/base/encode.h"

namespace capstone {

/// Encodes one part of a URL's path. Letters, digits and . _ - ~ are kept.
std::string percent_encoded(std::string_view text);

}  // namespace capstone
