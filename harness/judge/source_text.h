#pragma once
// What a reader of a source does not see.
#include <string>
#include <string_view>

namespace capstone {

/// A label that names the first character that a reader sees in another place, not at all, or as another one:
/// marks that change the direction of writing, anywhere; invisible characters, anywhere; letters outside
/// ASCII in code. Empty when there is none. Comments and strings may be in any language.
/// @param python  comments begin with #, strings may span lines
std::string label_of_hidden_text(std::string_view source, bool python);

}  // namespace capstone
