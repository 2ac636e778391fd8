#pragma once
// Free text in YAML that people type: kept letter by letter, where YAML would read a comment, a key or a
// mapping. Private to the gradebook.
#include <functional>
#include <string>
#include <string_view>

namespace capstone::detail {

/// Puts the values of chosen keys into quotation marks, so that YAML keeps their `#`, `:`, `@` and `{{…}}`.
/// A value may go on in the lines below it that are indented more than its key. Values that already are in
/// quotation marks or in a block (`|`, `>`) stay as they are. The number of lines does not change.
/// @param is_text  whether the value of a key is free text
/// @param indent   [letters] in front of the key
std::string with_literal_text(const std::string& yaml,
                              const std::function<bool(std::string_view key, std::size_t indent)>& is_text);

}  // namespace capstone::detail
