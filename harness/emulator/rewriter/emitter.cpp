#include "rewriter/emitter.h"

#include <cctype>

namespace capstone::rewriter {
namespace {

constexpr int kMostBlankLines = 8;  // further away a line marker is shorter

// The words that the prelude leaves for the rewriter may also come from a header that the user includes.
void blank_out(std::string& text, std::string_view word) {
  const auto continues = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    if (!continues(at + word.size())) text.replace(at, word.size(), word.size(), ' ');
}

}  // namespace

void Emitter::append(std::string_view text) {
  out_ += text;
  column_ += static_cast<int>(text.size());
}

void Emitter::opaque(const Token& token) {
  std::string text(source_.spelling(token));
  blank_out(text, "capstone_emu_device");
  blank_out(text, "capstone_emu_global");
  out_ += '\n';
  out_ += text;
  out_ += '\n';
  file_ = -1;
}

void Emitter::move_to(const Token& token) {
  if (token.file != file_ || token.line < line_ || token.line > line_ + kMostBlankLines) {
    out_ += "\n# " + std::to_string(token.line) + " \"" +
            source_.files[static_cast<std::size_t>(token.file)] + "\"\n";
    column_ = 0;
  } else if (token.line > line_) {
    out_.append(static_cast<std::size_t>(token.line - line_), '\n');
    column_ = 0;
  } else {
    if (glued_ || token.begin != last_end_) append(" ");
    if (!glued_ && token.column > column_)
      append(std::string(static_cast<std::size_t>(token.column - column_), ' '));
    return;
  }
  file_ = token.file;
  line_ = token.line;
  append(std::string(static_cast<std::size_t>(token.column), ' '));
}

void Emitter::token(const Token& token) {
  if (token.kind == TokenKind::kEnd) return;
  if (token.kind == TokenKind::kOpaque) return opaque(token);
  move_to(token);
  if (token.kind == TokenKind::kPragma) {  // needs a separate line
    out_ += '\n';
    out_ += source_.spelling(token);
    out_ += '\n';
    file_ = -1;
    return;
  }
  const std::string_view text = source_.spelling(token);
  append(text);
  for (char c : text) line_ += c == '\n';  // raw strings
  last_end_ = token.end;
  glued_ = false;
}

void Emitter::raw(std::string_view text) {
  if (!out_.empty()) append(" ");
  append(text);
  glued_ = true;
}

}  // namespace capstone::rewriter
