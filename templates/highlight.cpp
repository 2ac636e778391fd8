#include "templates/highlight.h"

#include <algorithm>
#include <array>

#include "harness/emulator/rewriter/cxx_tokens.h"

namespace capstone {
namespace {

// Sorted.
constexpr std::array<std::string_view, 62> kKeywords{"__constant__",
                                                     "__device__",
                                                     "__forceinline__",
                                                     "__global__",
                                                     "__host__",
                                                     "__launch_bounds__",
                                                     "__managed__",
                                                     "__restrict__",
                                                     "__shared__",
                                                     "alignas",
                                                     "auto",
                                                     "bool",
                                                     "break",
                                                     "case",
                                                     "catch",
                                                     "char",
                                                     "class",
                                                     "const",
                                                     "const_cast",
                                                     "constexpr",
                                                     "continue",
                                                     "decltype",
                                                     "default",
                                                     "delete",
                                                     "do",
                                                     "double",
                                                     "else",
                                                     "enum",
                                                     "extern",
                                                     "false",
                                                     "float",
                                                     "for",
                                                     "goto",
                                                     "if",
                                                     "inline",
                                                     "int",
                                                     "long",
                                                     "namespace",
                                                     "new",
                                                     "nullptr",
                                                     "operator",
                                                     "private",
                                                     "public",
                                                     "return",
                                                     "short",
                                                     "signed",
                                                     "sizeof",
                                                     "static",
                                                     "static_assert",
                                                     "static_cast",
                                                     "struct",
                                                     "switch",
                                                     "template",
                                                     "this",
                                                     "true",
                                                     "typedef",
                                                     "typename",
                                                     "unsigned",
                                                     "using",
                                                     "void",
                                                     "volatile",
                                                     "while"};
static_assert(std::is_sorted(kKeywords.begin(), kKeywords.end()));

const char* kind_of(const CxxToken& token) {
  switch (token.kind) {
    case CxxTokenKind::kIdentifier:
      return std::binary_search(kKeywords.begin(), kKeywords.end(), token.text) ? "keyword" : "";
    case CxxTokenKind::kNumber:
      return "literal";
    case CxxTokenKind::kString:
    case CxxTokenKind::kCharacter:
      return "string";
    case CxxTokenKind::kComment:
      return "comment";
    case CxxTokenKind::kDirective:
      return "directive";
    case CxxTokenKind::kPunctuator:
      break;
  }
  return "";
}

class Lines {
 public:
  // Adds a part, which may hold line ends. Neighbours of one kind become one part.
  void add(std::string_view text, const char* kind) {
    for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      add_to_line(text.substr(0, end), kind);
      lines_.emplace_back();
    }
    add_to_line(text, kind);
  }
  std::vector<std::vector<Highlight>> take() {
    if (lines_.back().empty()) lines_.pop_back();  // the source ends with a line end
    return std::move(lines_);
  }

 private:
  void add_to_line(std::string_view text, const char* kind) {
    if (text.empty()) return;
    std::vector<Highlight>& line = lines_.back();
    if (!line.empty() && line.back().kind == kind)
      line.back().text = {line.back().text.data(), line.back().text.size() + text.size()};
    else
      line.push_back({text, kind});
  }
  std::vector<std::vector<Highlight>> lines_{1};
};

}  // namespace

std::vector<std::vector<Highlight>> highlighted_lines(std::string_view source) {
  Lines lines;
  std::size_t at = 0;
  for (const CxxToken& token : cxx_tokens(source)) {
    const auto begin = static_cast<std::size_t>(token.text.data() - source.data());
    lines.add(source.substr(at, begin - at), "");
    lines.add(token.text, kind_of(token));
    at = begin + token.text.size();
  }
  lines.add(source.substr(at), "");
  return lines.take();
}

std::vector<std::vector<Highlight>> plain_lines(std::string_view source) {
  Lines lines;
  lines.add(source, "");
  return lines.take();
}

}  // namespace capstone
