#pragma once
// Beginnings of labels that one part writes and another one looks for.
#include <string_view>

namespace capstone {

/// Before a result is believed, somebody has to say by which mechanism it came about. Behind it: what is surprising.
inline constexpr std::string_view kNeedsExplanation = "needs an explanation: ";

}  // namespace capstone
