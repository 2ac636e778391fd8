#include "harness/course/gradebook/literal_yaml.h"

#include <vector>

#include "harness/base/json.h"
#include "harness/base/text.h"

namespace capstone::detail {
namespace {

std::size_t indent_of(std::string_view line) {
  const std::size_t at = line.find_first_not_of(' ');
  return at == std::string_view::npos ? line.size() : at;
}

bool is_quoted(const std::string& value) {
  if (value.size() < 2 || value.front() != value.back()) return false;
  if (value.front() == '"') return Json::accept(value);
  return value.front() == '\'' &&
         replace_all(value.substr(1, value.size() - 2), "''", "").find('\'') == std::string::npos;
}

bool opens_block(std::string_view rest) {
  return !rest.empty() && (rest.front() == '|' || rest.front() == '>') &&
         rest.find_first_not_of("+-0123456789", 1) == std::string_view::npos;
}

// The line behind the last one that belongs to the value of the key in line `at`.
std::size_t end_of_value(const std::vector<std::string>& lines, std::size_t at, std::size_t indent) {
  std::size_t end = at + 1;
  for (std::size_t i = end; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;  // part of the value only if more of it follows
    if (indent_of(lines[i]) <= indent) break;
    end = i + 1;
  }
  return end;
}

}  // namespace

std::string with_literal_text(const std::string& yaml,
                              const std::function<bool(std::string_view, std::size_t)>& is_text) {
  std::vector<std::string> lines = split(yaml, '\n');
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const std::string_view line = lines[at];
    const std::size_t indent = indent_of(line), colon = line.find(':');
    if (colon == std::string_view::npos || line.substr(indent).starts_with('#')) continue;
    const std::string_view key = trim(line.substr(indent, colon - indent));
    if (colon + 1 < line.size() && std::string_view(" \t\r").find(line[colon + 1]) == std::string_view::npos)
      continue;
    if (!is_text(key, indent)) continue;
    const std::string_view rest = trim(line.substr(colon + 1));
    const std::size_t end = end_of_value(lines, at, indent);
    std::string value(rest);
    for (std::size_t i = at + 1; i < end; ++i) value += "\n" + std::string(trim(lines[i]));
    value = trim(value);
    if (!value.empty() && !opens_block(rest) && !is_quoted(value)) {
      lines[at] = lines[at].substr(0, colon + 1) + " " + Json(to_utf8(value)).dump();
      for (std::size_t i = at + 1; i < end; ++i) lines[i].clear();
    }
    at = end - 1;
  }
  return join(lines, "\n");
}

}  // namespace capstone::detail
