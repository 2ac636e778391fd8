#pragma once
// Finds the code blocks of a Markdown text.
#include <string>
#include <vector>

namespace capstone {

struct CodeBlock {
  enum class Kind { kFenced, kIndented, kPre } kind = Kind::kFenced;
  std::string language;  ///< first word of the info string, lower case; empty: none
  std::string text;
  bool cut_off = false;  ///< the fence is never closed, so the block extends to the end of the reply
};

/// Every code block that is not empty, in document order. Fenced blocks inside a Markdown block are opened,
/// up to three levels deep.
///
/// cmark-gfm needs quadratic time for some inline markup and for deep nesting. That cannot happen here:
/// characters of inline markup are replaced before parsing and restored in the blocks, and nesting stops at
/// 32 levels.
/// @param text  UTF-8 with \n line ends and no control characters but tab and newline.
std::vector<CodeBlock> code_blocks(const std::string& text);

}  // namespace capstone
