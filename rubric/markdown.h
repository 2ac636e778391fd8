#pragma once
// A thin owner around cmark-gfm's syntax tree, for code that reads or rewrites a student's Markdown.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct cmark_node;

namespace capstone {

/// Largest worklog that is read; what lies beyond is cut off (and becomes a finding).
inline constexpr std::size_t kMarkdownLimit = std::size_t{2} << 20;  // [B]

/// Whether parsing `text` could take more than linear time beyond what a page is worth: Markdown's nesting
/// and its delimiter runs are quadratic in the worst case. Estimated as the sum over paragraphs of the square of
/// the count of each delimiter; ordinary prose is a thousand times below the bound.
bool is_hostile_markdown(std::string_view text);

/// A parsed document: GitHub's tables on, everything else CommonMark. The tree belongs to this object.
class MarkdownDocument {
 public:
  /// `text` must be UTF-8. Hostile text is parsed as one indented code block, so that it is shown but not interpreted.
  explicit MarkdownDocument(std::string_view text);
  cmark_node* root() const { return root_.get(); }
  /// The top-level blocks in order.
  std::vector<cmark_node*> blocks() const;

 private:
  struct Free { void operator()(cmark_node* node) const; };
  std::unique_ptr<cmark_node, Free> root_;
};

/// Where a stretch of a block's plain text comes from.
struct TextPiece {
  cmark_node* node = nullptr;      ///< a text node
  std::size_t begin = 0, end = 0;  ///< [B] in FlatText::text
};

/// One leaf block (paragraph, heading, table cell) as plain text. Code spans and raw HTML are blanked, byte for
/// byte, so that nothing inside them is taken for prose.
struct FlatText {
  std::string text;
  std::vector<TextPiece> pieces;
  std::string column;      ///< heading of the column, for a table cell
  int line = 0;            ///< first line in the source, from 1
  bool in_quote = false;   ///< inside a block quote
  bool in_table = false;
  bool is_heading = false;
};

/// Every leaf block below `node` that holds text, in order; code blocks and raw HTML blocks are left out.
std::vector<FlatText> flat_blocks(cmark_node* node);

/// The plain text of one node and everything below it, code included; soft breaks become spaces.
std::string plain_text(cmark_node* node);

/// Number of words: runs of characters between white space that hold a letter or a digit.
int count_words(std::string_view text);

}  // namespace capstone
