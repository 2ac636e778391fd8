#include "rewriter/token.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <set>

#include "rewriter/cxx_tokens.h"

namespace capstone::rewriter {
namespace {

/// `# 12 "file" 1 3`
struct LineMarker {
  int line;
  std::string file;
  bool enters = false, returns = false, system = false;
};

std::optional<LineMarker> parse_marker(std::string_view text) {
  if (text.size() < 4 || text[0] != '#' || text[1] != ' ' ||
      !std::isdigit(static_cast<unsigned char>(text[2])))
    return std::nullopt;
  LineMarker marker{};
  auto [rest, error] = std::from_chars(text.data() + 2, text.data() + text.size(), marker.line);
  std::size_t i = static_cast<std::size_t>(rest - text.data());
  if (error != std::errc() || i + 1 >= text.size() || text[i + 1] != '"') return std::nullopt;
  for (i += 2; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    marker.file += text[i];
  }
  for (; i < text.size(); ++i) {
    marker.enters |= text[i] == '1';
    marker.returns |= text[i] == '2';
    marker.system |= text[i] == '3';
  }
  return marker;
}

TokenKind kind_of(CxxTokenKind kind) {
  switch (kind) {
    case CxxTokenKind::kIdentifier:
      return TokenKind::kIdentifier;
    case CxxTokenKind::kNumber:
      return TokenKind::kNumber;
    case CxxTokenKind::kString:
      return TokenKind::kString;
    case CxxTokenKind::kCharacter:
      return TokenKind::kCharacter;
    default:
      return TokenKind::kPunctuator;
  }
}

class Lexer {
 public:
  explicit Lexer(std::string text) { source_.text = std::move(text); }

  SourceText run() {
    source_.files.emplace_back();
    while (at_ < text().size()) step();
    close_opaque(at_);
    add(TokenKind::kEnd, at_);
    return std::move(source_);
  }

 private:
  const std::string& text() const { return source_.text; }
  char peek() const { return at_ < text().size() ? text()[at_] : '\0'; }

  void step() {
    if (at_ == line_start_ && peek() == '#') return directive();
    if (system_) return skip_line();
    if (begins_pragma()) return directive();
    if (peek() == '\n') return next_line(at_ + 1);
    if (std::isspace(static_cast<unsigned char>(peek()))) {
      ++at_;
      return;
    }
    token();
  }

  // A macro may stand for one (CUTLASS_PRAGMA_UNROLL), as nvcc takes it: nothing else begins like this.
  bool begins_pragma() const { return text().compare(at_, 8, "#pragma ") == 0; }

  std::size_t line_end() const {
    const std::size_t end = text().find('\n', at_);
    return end == std::string::npos ? text().size() : end;
  }
  void next_line(std::size_t begin) {
    ++line_;
    at_ = line_start_ = begin < text().size() ? begin : text().size();
  }
  void skip_line() { next_line(line_end() + 1); }

  void directive() {
    const std::size_t end = line_end();
    if (auto marker = parse_marker(std::string_view(text()).substr(at_, end - at_))) {
      const std::size_t next = end < text().size() ? end + 1 : end;
      follow(*marker, next);
      at_ = line_start_ = next;
      line_ = marker->line;
      return;
    }
    if (!system_) {
      const std::size_t begin = at_;
      at_ = end;
      add(TokenKind::kPragma, begin);
    }
    skip_line();
  }

  // A file is a system header when it is first entered as one. Later markers say "system" also where a macro
  // from a system header was expanded in a line of the user's. `next` is where the marker's line ends: the
  // marker that returns from a header belongs to the header's text, so that the compiler's record of who
  // included whom stays balanced.
  void follow(const LineMarker& marker, std::size_t next) {
    const bool known_system = system_files_.contains(marker.file);
    const bool fresh = seen_.insert(marker.file).second;
    const bool system = known_system || (fresh && marker.system) || marker.file.starts_with('<');
    if (system) system_files_.insert(marker.file);
    if (system && !system_) {
      if (marker.enters) source_.inclusions.push_back({marker.file, file_, line_});
      opaque_begin_ = at_;
    } else if (!system && system_) {
      close_opaque(next);
      // The line counter may lag behind at an #include; the line that follows it is exact.
      if (marker.returns && !source_.inclusions.empty()) source_.inclusions.back().line = marker.line - 1;
    }
    system_ = system;
    if (system) return;
    for (file_ = 0; file_ < static_cast<int>(source_.files.size()); ++file_)
      if (source_.files[static_cast<std::size_t>(file_)] == marker.file) return;
    source_.files.push_back(marker.file);
  }

  void close_opaque(std::size_t end) {
    if (!system_ || end == opaque_begin_) return;
    const std::size_t saved = at_;
    at_ = end;
    add(TokenKind::kOpaque, opaque_begin_);
    at_ = saved;
  }

  void add(TokenKind kind, std::size_t begin) {
    source_.tokens.push_back(
        {kind, begin, at_, line_, static_cast<int>(begin > line_start_ ? begin - line_start_ : 0), file_});
  }

  /// `<%` becomes `{ `: columns stay the same.
  void replace_digraph() {
    static constexpr std::string_view kDigraphs[] = {"<%{", "%>}", "<:[", ":>]", "%:#"};
    std::string& all = source_.text;
    for (const std::string_view digraph : kDigraphs) {
      if (all.compare(at_, 2, digraph.substr(0, 2)) != 0) continue;
      // `<::` is `<` and `::`, unless a third colon or `>` follows
      const char next = at_ + 3 < all.size() ? all[at_ + 3] : '\0';
      if (digraph[0] == '<' && digraph[1] == ':' && at_ + 2 < all.size() && all[at_ + 2] == ':' &&
          next != ':' && next != '>')
        return;
      all[at_] = digraph[2];
      all[at_ + 1] = ' ';
      return;
    }
  }

  void token() {
    replace_digraph();
    const CxxToken found = cxx_token_at(text(), at_, line_);
    const std::size_t begin = at_;
    at_ += found.text.size();
    if (found.text == "<<<" && !source_.tokens.empty() && source_.is(source_.tokens.size() - 1, "operator"))
      --at_;  // operator<< <T>
    if (found.kind != CxxTokenKind::kComment) add(kind_of(found.kind), begin);
    for (std::size_t i = begin; i < at_; ++i)
      if (text()[i] == '\n') {
        ++line_;
        line_start_ = i + 1;
      }
  }

  SourceText source_;
  std::size_t at_ = 0, line_start_ = 0, opaque_begin_ = 0;
  int line_ = 1, file_ = 0;
  bool system_ = false;
  std::set<std::string> seen_, system_files_;
};

}  // namespace

SourceText tokenize(std::string text) { return Lexer(std::move(text)).run(); }

}  // namespace capstone::rewriter
