#include "harness/runtime/build/linker_messages.h"

#include <charconv>
#include <optional>

#include "harness/base/text.h"

namespace capstone {
namespace {

/// Splits `file:12` or `file:12:34` off the front of a line; the rest follows after ": ".
struct Located {
  std::string file;
  int line = 0, column = 0;
};

bool parse_number(std::string_view text, int& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::optional<Located> parse_location(std::string_view text) {
  Located place;
  int numbers[2] = {0, 0}, found = 0;
  while (found < 2) {
    const std::size_t colon = text.rfind(':');
    int value = 0;
    if (colon == std::string_view::npos || !parse_number(text.substr(colon + 1), value)) break;
    numbers[found++] = value;
    text = text.substr(0, colon);
  }
  if (found == 0 || text.empty()) return std::nullopt;
  place.file = text;
  place.line = found == 2 ? numbers[1] : numbers[0];
  place.column = found == 2 ? numbers[0] : 0;
  return place;
}

}  // namespace

std::vector<UndefinedReference> undefined_references(std::string_view log) {
  static constexpr std::string_view kMarker = "undefined reference to `";
  std::vector<UndefinedReference> found;
  for (const std::string& line : split(log, '\n')) {
    const std::size_t at = line.find(kMarker);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + kMarker.size(), end = line.find('\'', begin);
    UndefinedReference reference{line.substr(begin, end == std::string::npos ? end : end - begin), {}, 0};
    std::string_view before = std::string_view(line).substr(0, at);
    while (!before.empty() && (before.back() == ' ' || before.back() == ':')) before.remove_suffix(1);
    if (auto place = parse_location(before)) {
      const std::size_t space = place->file.rfind(": ");  // "/usr/bin/ld: kernel.cu"
      reference.file = space == std::string::npos ? place->file : place->file.substr(space + 2);
      reference.line = place->line;
    }
    found.push_back(std::move(reference));
  }
  return found;
}

}  // namespace capstone
