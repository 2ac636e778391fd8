#pragma once
#include <string>

#include "harness/base/text.h"

namespace capstone::cli {

/// The text as one word of a POSIX shell: as it is, or in single quotes where it needs them.
inline std::string shell_word(const std::string& text) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  return "'" + replace_all(text, "'", "'\\''") + "'";
}

}  // namespace capstone::cli
