#include "harness/project/reply/markdown.h"

#include <cmark-gfm.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <string_view>

#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr int kMaxNesting = 32;       // container markers at the start of a line
constexpr int kMaxMarkdownDepth = 3;  // Markdown inside fenced Markdown

// Characters that begin inline markup or a container, each with the control character that replaces it.
constexpr std::string_view kMarkup = "*_[]!`&\\<>-+0123456789";
constexpr std::string_view kStandIn =
    "\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b";
static_assert(kMarkup.size() == kStandIn.size());

std::array<char, 256> table(std::string_view from, std::string_view to) {
  std::array<char, 256> map{};
  for (int i = 0; i < 256; ++i) map[static_cast<std::size_t>(i)] = static_cast<char>(i);
  for (std::size_t i = 0; i < from.size(); ++i) map[static_cast<unsigned char>(from[i])] = to[i];
  return map;
}
const std::array<char, 256> kDisguise = table(kMarkup.substr(0, 9), kStandIn.substr(0, 9));
const std::array<char, 256> kMarker = table(kMarkup, kStandIn);
const std::array<char, 256> kRestore = table(kStandIn, kMarkup);
char mapped(const std::array<char, 256>& map, char c) { return map[static_cast<unsigned char>(c)]; }

bool blank(char c) { return c == ' ' || c == '\t'; }

// Length of a container marker ("> ", "- ", "12. ") at the start of `line`; 0: none.
std::size_t marker_length(std::string_view line) {
  auto blank_at = [&](std::size_t i) { return i >= line.size() || blank(line[i]); };
  if (line.empty()) return 0;
  if (line[0] == '>') return 1;
  if ((line[0] == '-' || line[0] == '+' || line[0] == '*') && blank_at(1)) return 1;
  std::size_t digits = 0;
  while (digits < line.size() && digits < 9 && std::isdigit(static_cast<unsigned char>(line[digits])))
    ++digits;
  if (digits > 0 && digits < line.size() && (line[digits] == '.' || line[digits] == ')') &&
      blank_at(digits + 1))
    return digits + 1;
  return 0;
}

// Where the container markers of a line end; the search stops at the nesting limit.
std::size_t skip_containers(std::string_view line, bool& too_deep) {
  std::size_t at = 0;
  for (int depth = 0;; ++depth) {
    while (at < line.size() && blank(line[at])) ++at;
    std::size_t marker = marker_length(line.substr(at));
    too_deep = marker > 0 && depth == kMaxNesting;
    if (marker == 0 || too_deep) return at;
    at += marker;
  }
}

// A run of at least three backticks that opens or closes a fence: no further backtick may follow on the line.
std::size_t fence_run(std::string_view rest) {
  std::size_t run = 0;
  while (run < rest.size() && rest[run] == '`') ++run;
  return run >= 3 && rest.find('`', run) == std::string_view::npos ? run : 0;
}

bool has_tag(std::string_view text, std::size_t at, std::string_view tag) {
  if (text.size() < at + tag.size()) return false;
  for (std::size_t i = 0; i < tag.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(text[at + i])) != tag[i]) return false;
  return true;
}

// Appends one line with its block structure unchanged and without inline markup. Of HTML only <pre> is kept:
// any other tag would hide a fence on the next line.
void disguise_line(std::string_view line, std::string& out) {
  bool too_deep = false;
  std::size_t start = skip_containers(line, too_deep);
  out += line.substr(0, start);
  std::string_view rest = line.substr(start);
  std::size_t kept = too_deep ? 0 : fence_run(rest);
  if (!too_deep && has_tag(rest, 0, "<pre")) kept = 1;
  out += rest.substr(0, kept);
  for (std::size_t i = kept; i < rest.size(); ++i)
    out += has_tag(rest, i, "</pre") ? '<' : mapped(too_deep && i == 0 ? kMarker : kDisguise, rest[i]);
}

std::string disguise(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    disguise_line(std::string_view(text).substr(at, end - at), out);
    out += '\n';
    at = end + 1;
  }
  return out;
}

std::string restored(const char* text) {
  std::string out = text ? text : "";
  for (char& c : out) c = mapped(kRestore, c);
  return out;
}

std::string first_word(const std::string& info) {
  std::string word;
  for (char c : trim(info)) {
    if (std::isspace(static_cast<unsigned char>(c)) || c == '{' || c == ',' || c == ':') break;
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word.size() <= 24 ? word : word.substr(0, 24);
}

// The text between <pre> and </pre> without the tags that highlighters add; entities stay.
std::string inside_pre(std::string_view html) {
  constexpr std::array<std::string_view, 7> kTags = {"<pre",   "<code", "</code", "<span",
                                                     "</span", "<br",   "<div"};
  std::string text;
  for (std::size_t i = 0; i < html.size(); ++i) {
    if (has_tag(html, i, "</pre")) break;
    bool tag = html[i] == '<' && std::any_of(kTags.begin(), kTags.end(),
                                             [&](std::string_view name) { return has_tag(html, i, name); });
    std::size_t end = tag ? html.find('>', i) : std::string_view::npos;
    if (end == std::string_view::npos)
      text += html[i];
    else
      i = end;
  }
  return text;
}

using Document = std::unique_ptr<cmark_node, void (*)(cmark_node*)>;

class Collector {
 public:
  Collector(const std::string& text, int depth) : depth_(depth) {
    for (std::size_t at = 0; at <= text.size();) {
      std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
    last_line_ = static_cast<int>(lines_.size());
    while (last_line_ > 0 && trim(lines_[static_cast<std::size_t>(last_line_ - 1)]).empty()) --last_line_;
  }

  std::vector<CodeBlock> collect(cmark_node* root) {
    std::unique_ptr<cmark_iter, void (*)(cmark_iter*)> iterator(cmark_iter_new(root), cmark_iter_free);
    while (cmark_iter_next(iterator.get()) != CMARK_EVENT_DONE) {
      cmark_node* node = cmark_iter_get_node(iterator.get());
      cmark_node_type type = cmark_node_get_type(node);
      if (type == CMARK_NODE_CODE_BLOCK) code(node);
      if (type == CMARK_NODE_HTML_BLOCK) html(node);
    }
    return std::move(blocks_);
  }

 private:
  void code(cmark_node* node) {
    int length = 0, offset = 0;
    char character = 0;
    bool is_fenced = cmark_node_get_fenced(node, &length, &offset, &character) != 0;
    CodeBlock block;
    block.kind = is_fenced ? CodeBlock::Kind::kFenced : CodeBlock::Kind::kIndented;
    block.text = restored(cmark_node_get_literal(node));
    if (is_fenced) {
      block.language = first_word(restored(cmark_node_get_fence_info(node)));
      block.cut_off = ends_inside(node, length, character);
    }
    if (trim(block.text).empty()) return;
    if (is_fenced && open_markdown(block)) return;
    blocks_.push_back(std::move(block));
  }

  // A closing fence is the last line of the block. Without one, the block extends to the end of the text.
  bool ends_inside(cmark_node* node, int length, char character) const {
    int end = cmark_node_get_end_line(node);
    if (end < last_line_ || end > static_cast<int>(lines_.size())) return false;
    std::string_view line = trim(lines_[static_cast<std::size_t>(last_line_ - 1)]);
    std::size_t run = 0;
    while (run < line.size() && line[line.size() - 1 - run] == character) ++run;
    bool only_fence = run >= static_cast<std::size_t>(length) &&
                      line.substr(0, line.size() - run).find_first_not_of("> \t") == std::string_view::npos;
    return !only_fence || cmark_node_get_start_line(node) == last_line_;
  }

  // ````markdown … ```cuda … ``` … ````: the block itself holds a Markdown document.
  bool open_markdown(const CodeBlock& block) {
    bool named = block.language == "markdown" || block.language == "md";
    bool nameless = block.language.empty() || block.language == "text" || block.language == "txt";
    if (depth_ >= kMaxMarkdownDepth || !(named || nameless)) return false;
    std::string_view body = block.text;
    bool has_fence = body.starts_with("```") || body.starts_with("~~~") ||
                     body.find("\n```") != std::string_view::npos ||
                     body.find("\n~~~") != std::string_view::npos;
    if (!has_fence) return false;
    std::vector<CodeBlock> inner;
    parse(block.text, depth_ + 1, inner);
    std::erase_if(inner, [](const CodeBlock& b) { return b.kind != CodeBlock::Kind::kFenced; });
    if (inner.empty()) return false;
    for (CodeBlock& found : inner) {
      found.cut_off = found.cut_off && block.cut_off;
      blocks_.push_back(std::move(found));
    }
    return true;
  }

  void html(cmark_node* node) {
    std::string html = restored(cmark_node_get_literal(node));
    if (!has_tag(html, 0, "<pre")) return;
    CodeBlock block;
    block.kind = CodeBlock::Kind::kPre;
    block.text = inside_pre(html);
    if (!trim(block.text).empty()) blocks_.push_back(std::move(block));
  }

  int depth_;
  int last_line_ = 0;
  std::vector<std::string_view> lines_;
  std::vector<CodeBlock> blocks_;

 public:
  static void parse(const std::string& text, int depth, std::vector<CodeBlock>& out) {
    std::string disguised = disguise(text);
    Document root(cmark_parse_document(disguised.data(), disguised.size(), CMARK_OPT_DEFAULT),
                  cmark_node_free);
    std::vector<CodeBlock> found = Collector(text, depth).collect(root.get());
    for (CodeBlock& block : found) out.push_back(std::move(block));
  }
};

}  // namespace

std::vector<CodeBlock> code_blocks(const std::string& text) {
  std::vector<CodeBlock> blocks;
  Collector::parse(text, 0, blocks);
  return blocks;
}

}  // namespace capstone
