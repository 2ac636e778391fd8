#pragma once
#include <string>
#include <string_view>

namespace capstone::cli {

/// The number of a factor as people write it: "1.4" of "1.4", "1.4x", "1.4X" and "1.4×".
inline std::string without_times_sign(std::string_view text) {
  for (const std::string_view sign : {"x", "X", "×"})
    if (text.ends_with(sign)) return std::string(text.substr(0, text.size() - sign.size()));
  return std::string(text);
}

}  // namespace capstone::cli
