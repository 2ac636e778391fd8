#include "harness/judge/source_text.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdint>

namespace capstone {
namespace {

struct Character {
  char32_t point = 0;  ///< 0xfffd where it is no UTF-8
  std::size_t bytes = 1;
};

Character character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t bytes = byte(0) < 0x80 ? 1 : byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (bytes == 1) return {byte(0), 1};
  if (bytes > text.size() || byte(0) < 0xc2) return {0xfffd, 1};
  char32_t point = byte(0) & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0xfffd, 1};
    point = point << 6 | (byte(i) & 0x3fu);
  }
  return {point, bytes};
}

bool changes_direction(char32_t c) {
  return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f ||
         c == 0x061c;
}

bool is_invisible(char32_t c) {
  return (c >= 0x200b && c <= 0x200d) || (c >= 0x2060 && c <= 0x2064) || c == 0xfeff || c == 0x00ad ||
         c == 0x3164 || (c >= 0xe0000 && c <= 0xe007f);
}

// Whether a place in a source is code, a comment or in a string; raw strings included.
class Place {
 public:
  Place(std::string_view source, bool python) : source_(source), python_(python) {}
  bool is_code() const { return end_.empty(); }

  /// @return how many bytes belong together from here on.
  std::size_t step(std::size_t at) {
    const std::string_view rest = source_.substr(at);
    if (!end_.empty()) {
      if (rest.starts_with(end_)) {
        const std::size_t bytes = end_.size();
        end_.clear();
        return bytes;
      }
      if (escapes_ && rest[0] == '\\' && rest.size() > 1) return 2;
      if (one_line_ && rest[0] == '\n') end_.clear();
      return 1;
    }
    const auto begin = [&](std::string end, bool escapes, bool one_line, std::size_t bytes) {
      end_ = std::move(end);
      escapes_ = escapes;
      one_line_ = one_line;
      return bytes;
    };
    if (python_ ? rest[0] == '#' : rest.starts_with("//")) return begin("\n", false, true, 1);
    if (!python_ && rest.starts_with("/*")) return begin("*/", false, false, 2);
    if (!python_ && rest.starts_with("R\""))
      if (const std::size_t open = rest.find('('); open < 19)
        return begin(")" + std::string(rest.substr(2, open - 2)) + "\"", false, false, open + 1);
    const bool separates = at > 0 && std::isalnum(static_cast<unsigned char>(source_[at - 1])) != 0;  // 1'000
    if (rest[0] == '"' || (rest[0] == '\'' && (python_ || !separates)))
      return begin(std::string(1, rest[0]), true, !python_, 1);
    return 1;
  }

 private:
  std::string_view source_;
  bool python_;
  std::string end_;  ///< of what is not code; empty in code
  bool escapes_ = false, one_line_ = false;
};

}  // namespace

std::string label_of_hidden_text(std::string_view source, bool python) {
  if (source.starts_with("\xef\xbb\xbf")) source.remove_prefix(3);  // a mark of the encoding
  Place place(source, python);
  int line = 1;
  for (std::size_t at = 0; at < source.size();) {
    const Character c = character_at(source.substr(at));
    const char* what = changes_direction(c.point)           ? "changes the direction of writing"
                       : is_invisible(c.point)              ? "is invisible"
                       : c.point >= 0x80 && place.is_code() ? "may look like another letter"
                                                            : nullptr;
    if (what)
      return fmt::format("source: U+{:04X} in line {} {}: read it with care",
                         static_cast<std::uint32_t>(c.point), line, what);
    const std::size_t bytes = c.bytes > 1 ? c.bytes : place.step(at);
    for (std::size_t i = at; i < at + bytes && i < source.size(); ++i) line += source[i] == '\n';
    at += bytes;
  }
  return {};
}

}  // namespace capstone
