#pragma once
// Beginnings of labels that one part writes and another one looks for.
#include <string_view>

namespace capstone {

/// Before a result is believed, somebody has to say by which mechanism it came about. Behind it: what is surprising.
inline constexpr std::string_view kNeedsExplanation = "needs an explanation: ";

/// Judged by a definition that came with the bundle. Behind it: which, and what the catalogue knows of it.
inline constexpr std::string_view kForeignDefinition = "not the catalogue's definition: ";

}  // namespace capstone
