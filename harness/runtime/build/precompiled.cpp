#include "harness/runtime/build/precompiled.h"

#include <cctype>

#include "harness/base/text.h"

namespace capstone {
namespace {

/// `# 12 "file" 1 3` names a file of the compiler's (`<built-in>`) or one outside the source's folder.
bool leads_outside(std::string_view marker) {
  const std::size_t name = marker.find('"') + 1;
  return name != 0 && name < marker.size() && (marker[name] == '/' || marker[name] == '<');
}

}  // namespace

std::vector<std::string> included_first(std::string_view text) {
  constexpr std::string_view kInclude = "#include <";
  std::vector<std::string> headers;
  for (const std::string& line : split(text, '\n'))
    if (line.starts_with(kInclude))
      headers.push_back(line.substr(kInclude.size(), line.find('>') - kInclude.size()));
  return headers;
}

std::optional<HeadersAndRest> split_headers(std::string_view text, std::string_view source) {
  const std::size_t begin = text.find('\n') + 1;
  const std::string entered = "\n# 1 \"" + std::string(source) + "\"";
  const std::size_t found = text.find(entered, begin);
  if (begin == 0 || found == std::string_view::npos) return std::nullopt;
  const std::string_view headers = text.substr(begin, found + 1 - begin);
  for (std::size_t at = 0; (at = headers.find("\n# ", at)) != std::string_view::npos; at += 3)
    if (at + 3 < headers.size() && std::isdigit(static_cast<unsigned char>(headers[at + 3])) &&
        !leads_outside(headers.substr(at + 1, headers.find('\n', at + 1) - at - 1)))
      return std::nullopt;
  return HeadersAndRest{std::string(text.substr(0, begin)), std::string(headers),
                        std::string(text.substr(found + 1))};
}

std::string with_precompiled(const HeadersAndRest& parts, const std::filesystem::path& precompiled) {
  return parts.begin + "# 0 \"<built-in>\"\n# 0 \"<command-line>\"\n#pragma GCC pch_preprocess \"" +
         precompiled.string() + "\"\n" + parts.rest;
}

}  // namespace capstone
