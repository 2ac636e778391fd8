#include "templates/blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/correctness/diagnose.h"
#include "templates/wrong_map.h"

namespace capstone {

std::string escape_markdown(std::string_view text) {
  static constexpr std::string_view kSpecial = "\\`*_{}[]<>#|!~&";
  std::string out;
  for (char c : to_utf8(text)) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    if (kSpecial.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

namespace {

// A fenced code block whose fence is longer than any run of backticks in the text, so that the text cannot
// close it.
std::string fenced(const ListingBlock& code) {
  std::size_t longest = 0, run = 0;
  for (char c : code.text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  std::string text = to_utf8(code.text);
  if (!text.empty() && text.back() != '\n') text += '\n';
  return fmt::format("{}{}\n{}{}\n", fence, code.language, text, fence);
}

struct MarkdownWriter {
  std::string operator()(const TableBlock& table) const {
    std::string out = table.caption.empty() ? "" : "*" + escape_markdown(table.caption) + "*\n\n";
    std::string rule;
    for (const TableBlock::Column& c : table.columns) {
      out += "| " + escape_markdown(c.title) + " ";
      rule += c.number ? "|--:" : "|:--";
    }
    out += "|\n" + rule + "|\n";
    for (const std::vector<Cell>& row : table.rows) {
      for (const Cell& cell : row)
        out += "| " + (cell.strong ? "**" + escape_markdown(cell.text) + "**" : escape_markdown(cell.text)) +
               " ";
      out += "|\n";
    }
    return out;
  }
  std::string operator()(const NoteBlock& note) const { return escape_markdown(note.text) + "\n"; }
  std::string operator()(const FactsBlock& facts) const {
    std::string out;
    for (const auto& [label, cell] : facts.facts)
      out += fmt::format("- {}: {}\n", escape_markdown(label), escape_markdown(cell.text));
    return out;
  }
  std::string operator()(const ListingBlock& code) const {
    return escape_markdown(code.summary) + ":\n\n" + fenced(code);
  }
  std::string operator()(const HeadingBlock& heading) const {
    return "#### " + escape_markdown(heading.text) + "\n";
  }
  std::string operator()(const FigureBlock& figure) const {
    return fmt::format("*{}* (drawn in worklog.html). {}\n", escape_markdown(figure.plot.title),
                       escape_markdown(figure.plot.description));
  }
  std::string operator()(const MapBlock& map) const {
    return fmt::format("Where the wrong elements are ({}: {}):\n\n{}", escape_markdown(map.of), kMapKey,
                       fenced({{}, text_of(map), "text"}));
  }
};

}  // namespace

std::string to_markdown(const Figure& figure) {
  std::string out = "### " + escape_markdown(figure.title) + "\n";
  for (const Block& block : figure.blocks) out += "\n" + std::visit(MarkdownWriter{}, block);
  return out;
}

}  // namespace capstone
