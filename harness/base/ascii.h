#pragma once
// Letter functions that do not depend on the locale.
#include <string>
#include <string_view>

namespace capstone {

/// The text with A … Z replaced by a … z; all other bytes stay unchanged.
inline std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace capstone
