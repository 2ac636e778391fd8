#pragma once
// The parts of a figure, independent of the output format (HTML or Markdown).
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
  struct Column {
    std::string title;
    bool number = false;
    bool wide = false;
  };
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};
struct NoteBlock {
  std::string text;
  Tone tone = Tone::kPlain;
};
struct FactsBlock {
  std::vector<std::pair<std::string, Cell>> facts;
};
struct ListingBlock {
  std::string summary, text, language;
  bool open = false;
  bool on_paper = true;  ///< false: a printed page has its summary alone
};
struct HeadingBlock {
  std::string text;
};
struct FigureBlock {
  Plot plot;
};

/// Where the wrong elements of an output lie; made, drawn and written by wrong_map.h.
struct MapBlock {
  std::string of;                  ///< "y[2, :, :], 4 x 2 elements a cell"
  std::vector<std::string> lines;  ///< a character for each cell: '0' (right) to '4' (all wrong), ' ' (none)
};

using Block =
    std::variant<TableBlock, NoteBlock, FactsBlock, ListingBlock, HeadingBlock, FigureBlock, MapBlock>;

/// A table, plot or list that the ledger fills in, named by its marker in the worklog.
struct Figure {
  std::string name, title;
  std::vector<Block> blocks;
};

/// Escapes a text for Markdown: every special character gets a backslash, and line breaks become spaces.
std::string escape_markdown(std::string_view text);
/// A figure as Markdown. Plots become their title and description.
std::string to_markdown(const Figure& figure);

}  // namespace capstone
