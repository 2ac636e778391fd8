#include "rewriter/cxx_tokens.h"

#include <algorithm>
#include <string>

namespace capstone {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool starts_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool continues_identifier(char c) { return starts_identifier(c) || is_digit(c); }

// The end of the token that begins at `at_`, by the rules of each kind.
class Cutter {
 public:
  Cutter(std::string_view text, std::size_t at) : text_(text), begin_(at), at_(at) {}

  CxxToken cut(int line) {
    const CxxTokenKind kind = find_end();
    return {kind, text_.substr(begin_, at_ - begin_), line, closed_};
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  CxxTokenKind find_end() {
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (starts_identifier(c)) return identifier();
    if (c == '"') return quoted('"', CxxTokenKind::kString);
    if (c == '\'') return quoted('\'', CxxTokenKind::kCharacter);
    if (c == '/' && (peek(1) == '/' || peek(1) == '*')) return comment();
    return punctuator();
  }

  CxxTokenKind number() {  // 0x1p-3f, 1'000'000
    for (; at_ < text_.size(); ++at_) {
      const char c = peek(), previous = at_ > begin_ ? text_[at_ - 1] : '\0';
      const bool sign =
          (c == '+' || c == '-') && std::string_view("eEpP").find(previous) != std::string_view::npos;
      const bool separator = c == '\'' && continues_identifier(peek(1));
      if (!continues_identifier(c) && c != '.' && !separator && !sign) break;
    }
    return CxxTokenKind::kNumber;
  }

  CxxTokenKind identifier() {
    while (at_ < text_.size() && continues_identifier(peek())) ++at_;
    const std::string_view name = text_.substr(begin_, at_ - begin_);
    const bool prefix = name == "L" || name == "u" || name == "U" || name == "u8";
    if (peek() == '"' && (name == "R" || name == "LR" || name == "uR" || name == "UR" || name == "u8R"))
      return raw_string();
    if (peek() == '"' && prefix) return quoted('"', CxxTokenKind::kString);
    if (peek() == '\'' && prefix) return quoted('\'', CxxTokenKind::kCharacter);
    return CxxTokenKind::kIdentifier;
  }

  CxxTokenKind raw_string() {
    constexpr std::size_t kLongestDelimiter = 16;
    const std::size_t open = text_.substr(0, at_ + kLongestDelimiter + 2).find('(', at_);
    if (open == std::string_view::npos) return quoted('"', CxxTokenKind::kString);
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const std::size_t end = text_.find(close, open);
    closed_ = end != std::string_view::npos;
    at_ = closed_ ? end + close.size() : text_.size();
    return CxxTokenKind::kString;
  }

  CxxTokenKind quoted(char quote, CxxTokenKind kind) {
    for (++at_; at_ < text_.size() && peek() != quote && peek() != '\n';) at_ += peek() == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    if (peek() == quote) ++at_;
    return kind;
  }

  CxxTokenKind comment() {
    const bool line = peek(1) == '/';
    const std::size_t end = text_.find(line ? "\n" : "*/", at_ + 2);
    closed_ = line || end != std::string_view::npos;
    at_ = end == std::string_view::npos ? text_.size() : end + (line ? 0 : 2);
    return CxxTokenKind::kComment;
  }

  CxxTokenKind punctuator() {
    static constexpr std::string_view kLong[] = {"<<<", "...", "<=>", "<<=", ">>=", "->*", "::", "->", "++",
                                                 "--",  "<<",  "<=",  ">=",  "==",  "!=",  "&&", "||", "+=",
                                                 "-=",  "*=",  "/=",  "%=",  "&=",  "|=",  "^=", ".*"};
    const std::string_view rest = text_.substr(at_, 3);
    std::size_t length = 1;
    if (rest.size() > 1 && std::string_view(".=>*:+-<&|").find(rest[1]) != std::string_view::npos)
      for (std::string_view one : kLong)
        if (length == 1 && rest.starts_with(one)) length = one.size();
    at_ += length;
    return CxxTokenKind::kPunctuator;
  }

  std::string_view text_;
  std::size_t begin_, at_;
  bool closed_ = true;
};

// Its end: a comment in it is a token of its own.
std::size_t directive_end(std::string_view text, std::size_t at) {
  for (; at < text.size() && text[at] != '\n'; ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] == '\\' && next == '\n')
      ++at;
    else if (text[at] == '/' && (next == '*' || next == '/'))
      break;
  }
  return std::min(at, text.size());
}

}  // namespace

CxxToken cxx_token_at(std::string_view text, std::size_t at, int line) { return Cutter(text, at).cut(line); }

std::vector<CxxToken> cxx_tokens(std::string_view text) {
  std::vector<CxxToken> tokens;
  int line = 1;
  bool line_begins = true;  // but for comments
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      if (text[at++] == '\n') ++line, line_begins = true;
      continue;
    }
    if (text[at] == '#' && line_begins)
      tokens.push_back({CxxTokenKind::kDirective, text.substr(at, directive_end(text, at) - at), line});
    else
      tokens.push_back(cxx_token_at(text, at, line));
    const CxxToken& token = tokens.back();
    line_begins =
        line_begins && (token.kind == CxxTokenKind::kComment || token.kind == CxxTokenKind::kDirective);
    line += static_cast<int>(std::count(token.text.begin(), token.text.end(), '\n'));
    at += token.text.size();
  }
  return tokens;
}

}  // namespace capstone
