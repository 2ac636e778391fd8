#pragma once
// Splits C++ and CUDA source into tokens. No text is an error: what is not C++ becomes tokens as well.
#include <string_view>
#include <vector>

namespace capstone {

enum class CxxTokenKind {
  kIdentifier,
  kNumber,
  kString,  ///< with its prefix; raw strings, too
  kCharacter,
  kPunctuator,  ///< the longest one, but '>' is always alone, because it may close a template list
  kComment,
  kDirective,  ///< from '#' to the end of its line and of the lines that continue it, or to a comment
};

struct CxxToken {
  CxxTokenKind kind;
  std::string_view text;
  int line;            ///< of its first character, counted from 1
  bool closed = true;  ///< false for a comment or a raw string that lacks its end
};

/// The token that begins at `at`, which is neither white space nor the end of the text. Never kDirective.
/// A string or character literal without its closing quote ends at the end of its line.
CxxToken cxx_token_at(std::string_view text, std::size_t at, int line);

/// All tokens of a source that has not been preprocessed.
std::vector<CxxToken> cxx_tokens(std::string_view text);

}  // namespace capstone
