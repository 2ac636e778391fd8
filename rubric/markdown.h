#pragma once
// A thin RAII wrapper around cmark-gfm's syntax tree, for code that reads or rewrites a student's Markdown.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct cmark_node;

namespace capstone {

/// Largest worklog that is read. The rest is cut off, and the reader reports a finding.
inline constexpr std::size_t kMarkdownLimit = std::size_t{2} << 20;  // [B]

/// Whether parsing `text` could take too long: Markdown's nesting and its delimiter runs take quadratic time
/// in the worst case. The estimate is the sum, over paragraphs and delimiters, of the squared number of
/// occurrences. Ordinary prose is a thousand times below the limit.
bool is_hostile_markdown(std::string_view text);

/// A parsed document: CommonMark plus GitHub's tables. This object owns the tree.
class MarkdownDocument {
 public:
  /// `text` must be UTF-8. Hostile text (is_hostile_markdown) is parsed as one indented code block, so that
  /// it is shown but not interpreted.
  explicit MarkdownDocument(std::string_view text);
  cmark_node* root() const { return root_.get(); }
  /// The top-level blocks in order.
  std::vector<cmark_node*> blocks() const;

 private:
  struct Free {
    void operator()(cmark_node* node) const;
  };
  std::unique_ptr<cmark_node, Free> root_;
};

/// The source of one range of a block's plain text.
struct TextPiece {
  cmark_node* node = nullptr;      ///< a text node
  std::size_t begin = 0, end = 0;  ///< [B] in FlatText::text
};

/// One leaf block (paragraph, heading, table cell) as plain text. Every byte of code spans and raw HTML is
/// replaced by a space, so that their content does not count as prose.
struct FlatText {
  std::string text;
  std::string with_code;  ///< the same bytes, with what code spans say
  std::vector<TextPiece> pieces;
  std::string column;     ///< for a table cell: the heading of its column
  std::string row;        ///< for a table cell: the first cell of its row
  int line = 0;           ///< first line in the source, counted from 1
  bool in_quote = false;  ///< inside a block quote
  bool in_table = false;
  bool is_heading = false;
};

/// Every leaf block below `node` that can hold text, in order. Code blocks and raw HTML blocks are left out.
std::vector<FlatText> flat_blocks(cmark_node* node);

/// The plain text of a node and everything below it, including code. Line breaks become spaces.
std::string plain_text(cmark_node* node);

/// The number of words: runs of non-space characters that contain a letter or a digit.
int count_words(std::string_view text);

}  // namespace capstone
