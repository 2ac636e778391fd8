#pragma once
// Extracts the kernel from a language model's reply: CUDA, or Python with ModelNew.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

/// A longer reply is refused: no kernel is that long.
inline constexpr std::size_t kMaxReplyBytes = std::size_t{4} << 20;
/// A reply with more code blocks is refused.
inline constexpr std::size_t kMaxCodeBlocks = 1000;

/// The result of reading a reply. Either `code` or `why_not` is empty.
struct Extraction {
  std::string code;                    ///< UTF-8, lines end in \n, no NUL; one whole .cu file, or .py
  bool python = false;                 ///< the code is Python with ModelNew, KernelBench's form
  std::string how;                     ///< where the code was: "one fenced block (cuda)"
  std::string why_not;                 ///< one sentence, when there is no code
  std::vector<std::string> notes;      ///< one sentence for each thing that was repaired or looks wrong
  std::vector<std::string> libraries;  ///< found by includes or calls: cublas, cudnn, thrust, cub, torch …
};

/// Finds the code in Markdown's syntax tree, so that any mix of prose and fences is understood as a reader
/// would.
///
/// A single block is taken as it is, whatever its language tag. Of several, the one that defines `launch()`
/// is taken and joined with those blocks that define what it lacks. If several define `launch()`, the last
/// complete one is taken. If none does, a Python block that defines ModelNew is taken. A patch is applied to
/// `base`, but only where its lines match exactly. Code without a fence, indented code, HTML <pre> blocks,
/// escaped code, a thinking part, CRLF, BOM, NUL and bytes that are not UTF-8 are handled and named in
/// `notes`. Never fails: a reply without code gives the reason in `why_not`. Takes time linear in the reply's
/// length.
///
/// @param reply  the reply's bytes, at most kMaxReplyBytes.
/// @param base   the code that a patch refers to: the previous attempt.
Extraction extract_code(std::string_view reply, const std::optional<std::string>& base = std::nullopt);

}  // namespace capstone
