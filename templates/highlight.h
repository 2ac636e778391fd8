#pragma once
// Syntax highlighting of C++ and CUDA source.
#include <string_view>
#include <vector>

namespace capstone {

/// A part of a line and its CSS class: "keyword", "string", "literal", "comment", "directive", or "" for the
/// rest.
struct Highlight {
  std::string_view text;
  const char* kind;
};

/// The lines of a source, without their ends, in parts. The parts of a line make up the whole line. They
/// refer to `source`.
std::vector<std::vector<Highlight>> highlighted_lines(std::string_view source);
/// The same lines in one part each, for other languages.
std::vector<std::vector<Highlight>> plain_lines(std::string_view source);

}  // namespace capstone
