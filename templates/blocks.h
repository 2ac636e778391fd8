#pragma once
// What a figure consists of, before anybody asks whether it becomes HTML or Markdown.
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/base/error.h"
#include "templates/plot.h"

namespace capstone {

enum class Tone { kPlain, kGood, kBad, kMuted };

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;
  bool strong = false;
};

struct TableBlock {
  struct Column { std::string title; bool number = false; bool wide = false; };
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};
struct NoteBlock { std::string text; Tone tone = Tone::kPlain; };
struct FactsBlock { std::vector<std::pair<std::string, Cell>> facts; };
struct CodeBlock { std::string summary, text, language; bool open = false; };
struct HeadingBlock { std::string text; };
struct FigureBlock { Plot plot; };

using Block = std::variant<TableBlock, NoteBlock, FactsBlock, CodeBlock, HeadingBlock, FigureBlock>;

/// A table, plot or list that the ledger fills in, named by its marker in the worklog.
struct Figure {
  std::string name, title;
  std::vector<Block> blocks;
};

/// Text as text in Markdown: every character that Markdown could read is escaped, line breaks become spaces.
std::string escape_markdown(std::string_view text);
std::string to_markdown(const Figure& figure);

}  // namespace capstone
