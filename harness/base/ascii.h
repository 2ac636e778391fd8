#pragma once
// Letters, whatever the locale.
#include <string>
#include <string_view>

namespace capstone {

/// The text with A … Z as a … z; every other byte stays.
inline std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace capstone
