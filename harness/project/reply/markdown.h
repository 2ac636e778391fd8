#pragma once
// The code blocks of a Markdown text.
#include <string>
#include <vector>

namespace capstone {

struct CodeBlock {
  enum class Kind { kFenced, kIndented, kPre } kind = Kind::kFenced;
  std::string language;     ///< first word of the info string, lower case; empty: none
  std::string text;
  bool cut_off = false;     ///< the fence is never closed and the reply ends inside
};

/// Every code block that is not empty, in document order. Fenced blocks inside a block that is itself Markdown are
/// opened, three levels deep.
///
/// cmark-gfm has inputs for which inline parsing and deep nesting take quadratic time. Neither matters here: what would
/// be inline markup is disguised before parsing and restored in the blocks, and nesting stops at 32 levels.
/// @param text  UTF-8 with \n line ends and no control characters but tab and newline.
std::vector<CodeBlock> code_blocks(const std::string& text);

}  // namespace capstone
