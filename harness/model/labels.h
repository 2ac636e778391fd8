#pragma once
// Prefixes of labels that one part of the program writes and another one looks for.
#include <string_view>

namespace capstone {

/// A result with this label needs a human explanation before it counts. The text after the prefix is what was
/// unexpected.
inline constexpr std::string_view kNeedsExplanation = "needs an explanation: ";

/// Judged by a definition that came with the bundle. The text after the prefix names it and its relation to
/// the catalogue.
inline constexpr std::string_view kForeignDefinition = "not the catalogue's definition: ";

}  // namespace capstone
