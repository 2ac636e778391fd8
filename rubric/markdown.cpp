#include "rubric/markdown.h"

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm-extension_api.h>
#include <cmark-gfm.h>

#include <array>
#include <mutex>

#include "harness/base/text.h"

namespace capstone {

namespace {

constexpr double kWorkBound = 2e8;  // delimiter pairs to inspect, about 0.1 s of parsing

void ensure_registered() {
  static std::once_flag once;
  std::call_once(once, cmark_gfm_core_extensions_ensure_registered);
}

bool is_type(cmark_node* node, std::string_view type) { return cmark_node_get_type_string(node) == type; }

// Indents every line by four spaces, so that CommonMark reads the whole text as one verbatim code block.
std::string as_code_block(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const std::string& line : split(text, '\n')) out += "    " + line + "\n";
  return out;
}

std::string blank(const std::string& literal) { return std::string(literal.size(), ' '); }

std::string literal_of(cmark_node* node) {
  const char* literal = cmark_node_get_literal(node);
  return literal == nullptr ? std::string() : literal;
}

void collect_inlines(cmark_node* parent, FlatText& flat) {
  for (cmark_node* node = cmark_node_first_child(parent); node != nullptr; node = cmark_node_next(node)) {
    cmark_node_type type = cmark_node_get_type(node);
    if (type == CMARK_NODE_TEXT) {
      std::size_t begin = flat.text.size();
      flat.text += literal_of(node);
      flat.with_code += literal_of(node);
      flat.pieces.push_back({node, begin, flat.text.size()});
    } else if (type == CMARK_NODE_CODE || type == CMARK_NODE_HTML_INLINE) {
      const std::string literal = literal_of(node);
      flat.text += blank(literal);
      flat.with_code += type == CMARK_NODE_CODE ? literal : blank(literal);
    } else if (type == CMARK_NODE_SOFTBREAK || type == CMARK_NODE_LINEBREAK) {
      flat.text += ' ';
      flat.with_code += ' ';
    } else {
      collect_inlines(node, flat);
    }
  }
}

bool holds_inlines(cmark_node* node) {
  cmark_node_type type = cmark_node_get_type(node);
  return type == CMARK_NODE_PARAGRAPH || type == CMARK_NODE_HEADING || is_type(node, "table_cell");
}

// The text of the header cell in the same column as a table cell.
std::string column_heading(cmark_node* cell) {
  int index = 0;
  for (cmark_node* before = cmark_node_previous(cell); before != nullptr;
       before = cmark_node_previous(before))
    ++index;
  cmark_node* table = cmark_node_parent(cmark_node_parent(cell));
  cmark_node* header = table == nullptr ? nullptr : cmark_node_first_child(table);
  if (header == nullptr) return {};
  cmark_node* above = cmark_node_first_child(header);
  while (above != nullptr && index-- > 0) above = cmark_node_next(above);
  return above == nullptr || above == cell ? std::string{} : plain_text(above);
}

// The text of the first cell in the row of a table cell; empty for that cell itself.
std::string row_heading(cmark_node* cell) {
  cmark_node* first = cmark_node_first_child(cmark_node_parent(cell));
  return first == cell ? std::string{} : plain_text(first);
}

int line_of(cmark_node* node) {
  // Some versions of cmark-gfm give table cells no line; then the row or the table has it.
  for (; node != nullptr; node = cmark_node_parent(node))
    if (int line = cmark_node_get_start_line(node); line > 0) return line;
  return 0;
}

}  // namespace

bool is_hostile_markdown(std::string_view text) {
  static constexpr std::string_view kDelimiters = "[]()<>*_`!|~&-+\\";
  std::array<double, kDelimiters.size()> counts{};
  double work = 0;
  auto settle = [&] {
    for (double& n : counts) {
      work += n * n;
      n = 0;
    }
  };
  bool empty_line = true;
  for (char c : text) {
    if (c == '\n') {
      if (empty_line) settle();
      empty_line = true;
      continue;
    }
    if (c != ' ' && c != '\t' && c != '\r') empty_line = false;
    if (std::size_t at = kDelimiters.find(c); at != std::string_view::npos) ++counts[at];
  }
  settle();
  return work > kWorkBound;
}

void MarkdownDocument::Free::operator()(cmark_node* node) const { cmark_node_free(node); }

MarkdownDocument::MarkdownDocument(std::string_view text) {
  ensure_registered();
  std::string harmless;
  if (is_hostile_markdown(text)) text = harmless = as_code_block(text);
  std::unique_ptr<cmark_parser, decltype(&cmark_parser_free)> parser(
      cmark_parser_new(CMARK_OPT_DEFAULT | CMARK_OPT_VALIDATE_UTF8), cmark_parser_free);
  if (cmark_syntax_extension* table = cmark_find_syntax_extension("table"))
    cmark_parser_attach_syntax_extension(parser.get(), table);
  cmark_parser_feed(parser.get(), text.data(), text.size());
  root_.reset(cmark_parser_finish(parser.get()));
  cmark_consolidate_text_nodes(root_.get());
}

std::vector<cmark_node*> MarkdownDocument::blocks() const {
  std::vector<cmark_node*> result;
  for (cmark_node* n = cmark_node_first_child(root()); n != nullptr; n = cmark_node_next(n))
    result.push_back(n);
  return result;
}

std::vector<FlatText> flat_blocks(cmark_node* top) {
  std::vector<FlatText> result;
  std::unique_ptr<cmark_iter, decltype(&cmark_iter_free)> iter(cmark_iter_new(top), cmark_iter_free);
  int quotes = 0;
  for (cmark_event_type event; (event = cmark_iter_next(iter.get())) != CMARK_EVENT_DONE;) {
    cmark_node* node = cmark_iter_get_node(iter.get());
    bool enter = event == CMARK_EVENT_ENTER;
    if (cmark_node_get_type(node) == CMARK_NODE_BLOCK_QUOTE) quotes += enter ? 1 : -1;
    if (!enter || !holds_inlines(node)) continue;
    FlatText flat;
    flat.line = line_of(node);
    flat.in_quote = quotes > 0;
    flat.in_table = is_type(node, "table_cell");
    flat.is_heading = cmark_node_get_type(node) == CMARK_NODE_HEADING;
    if (flat.in_table) flat.column = column_heading(node), flat.row = row_heading(node);
    collect_inlines(node, flat);
    result.push_back(std::move(flat));
  }
  return result;
}

std::string plain_text(cmark_node* top) {
  std::string text;
  std::unique_ptr<cmark_iter, decltype(&cmark_iter_free)> iter(cmark_iter_new(top), cmark_iter_free);
  for (cmark_event_type event; (event = cmark_iter_next(iter.get())) != CMARK_EVENT_DONE;) {
    if (event != CMARK_EVENT_ENTER) continue;
    cmark_node* node = cmark_iter_get_node(iter.get());
    switch (cmark_node_get_type(node)) {
      case CMARK_NODE_TEXT:
      case CMARK_NODE_CODE:
      case CMARK_NODE_HTML_INLINE:
        text += cmark_node_get_literal(node);
        break;
      case CMARK_NODE_SOFTBREAK:
      case CMARK_NODE_LINEBREAK:
        text += ' ';
        break;
      default:
        break;
    }
  }
  return text;
}

int count_words(std::string_view text) {
  int words = 0;
  bool counted = false;
  for (unsigned char c : text) {
    bool space = c == ' ' || (c >= '\t' && c <= '\r');
    bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c >= 0x80;
    if (space)
      counted = false;
    else if (letter && !counted) {
      ++words;
      counted = true;
    }
  }
  return words;
}

}  // namespace capstone
