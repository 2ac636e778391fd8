#pragma once
// The output of `g++ -E`, cut into tokens. Only the user's own files are cut; text of system headers stays
// whole.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace capstone::rewriter {

enum class TokenKind {
  kIdentifier,
  kNumber,
  kString,
  kCharacter,
  kPunctuator,  ///< the longest one, but '>' is always alone: it may close a template list
  kPragma,      ///< a whole #pragma line
  kOpaque,      ///< text of system headers, line markers included
  kEnd,
};

struct Token {
  TokenKind kind;
  std::size_t begin, end;  ///< in the text
  int line;                ///< of the user's file, counted from 1
  int column;              ///< in its line of the preprocessed text, counted from 0
  int file;                ///< index into SourceText::files
};

/// A system header that a line of the user's includes.
struct Inclusion {
  std::string path;
  int file, line;  ///< of the #include
};

struct SourceText {
  std::string text;
  std::vector<std::string> files;
  std::vector<Token> tokens;  ///< the last is kEnd
  std::vector<Inclusion> inclusions;

  std::string_view spelling(const Token& token) const {
    return std::string_view(text).substr(token.begin, token.end - token.begin);
  }
  /// Behind the last token there are only ends: whoever looks ahead needs no check of its own.
  const Token& at(std::size_t index) const { return index < tokens.size() ? tokens[index] : tokens.back(); }
  std::string_view spelling(std::size_t index) const { return spelling(at(index)); }
  bool is(std::size_t index, std::string_view what) const { return spelling(index) == what; }
};

/// Cuts preprocessed text. Never fails: an unterminated literal ends at the end of its line.
SourceText tokenize(std::string text);

}  // namespace capstone::rewriter
