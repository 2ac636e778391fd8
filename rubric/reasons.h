#pragma once
#include <string_view>

namespace capstone {

/// Whether the reason for a version says only that it changed, or how it went: "v2", "faster", "it was better
/// now". A reason names what causes the difference. Empty text has no reason at all: false.
bool names_no_cause(std::string_view reason);

}  // namespace capstone
