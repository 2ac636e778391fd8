#include "templates/wrong_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/correctness/diagnose.h"

namespace capstone {
namespace {

constexpr char kNoCell = ' ';
constexpr int kWide = 8, kHigh = 16;  // [px] of a cell: as tall as a character of a terminal

// The levels of a line's cells, '0' (right) to '4' (all wrong).
std::string levels_of(std::string_view line) {
  std::string levels;
  while (!line.empty() && levels.size() < std::size_t{kMapColumns}) {
    const auto cell = std::find_if(kMapCells.begin(), kMapCells.end(),
                                   [&](std::string_view each) { return line.starts_with(each); });
    const bool known = cell != kMapCells.end();
    levels += known ? static_cast<char>('0' + (cell - kMapCells.begin())) : kNoCell;
    line.remove_prefix(known ? cell->size() : 1);
  }
  return levels;
}

std::size_t columns_of(const MapBlock& map) {
  std::size_t columns = 0;
  for (const std::string& line : map.lines) columns = std::max(columns, line.size());
  return columns;
}

// The cells of one level: a rectangle for each run of neighbours in a line.
std::string outline_of(const MapBlock& map, char level) {
  std::string path;
  for (std::size_t y = 0; y < map.lines.size(); ++y) {
    const std::string& line = map.lines[y];
    for (std::size_t x = 0, end = 0; (x = line.find(level, end)) != std::string::npos;) {
      end = std::min(line.find_first_not_of(level, x), line.size());
      path +=
          fmt::format("M{} {}h{}v{}h-{}z", x * kWide, y * kHigh, (end - x) * kWide, kHigh, (end - x) * kWide);
    }
  }
  return path;
}

std::string grid_of(std::size_t columns, std::size_t lines) {
  std::string path;
  for (std::size_t x = 1; x < columns; ++x) path += fmt::format("M{} 0v{}", x * kWide, lines * kHigh);
  for (std::size_t y = 1; y < lines; ++y) path += fmt::format("M0 {}h{}", y * kHigh, columns * kWide);
  return path;
}

std::string range(std::size_t first, std::size_t last) {
  return first == last ? fmt::format(" {}", first + 1) : fmt::format("s {} to {}", first + 1, last + 1);
}

std::string in_words(const MapBlock& map) {
  std::size_t all = 0, wrong = 0, partly = 0;
  std::size_t top = map.lines.size(), bottom = 0, left = columns_of(map), right = 0;
  for (std::size_t y = 0; y < map.lines.size(); ++y)
    for (std::size_t x = 0; x < map.lines[y].size(); ++x) {
      const char level = map.lines[y][x];
      all += level != kNoCell;
      if (level == kNoCell || level == '0') continue;
      ++(level == '4' ? wrong : partly);
      top = std::min(top, y), bottom = std::max(bottom, y);
      left = std::min(left, x), right = std::max(right, x);
    }
  std::string text = fmt::format("A map of {} lines and {} columns. ", map.lines.size(), columns_of(map));
  if (wrong + partly == 0) return text + "No cell holds wrong elements.";
  return text +
         fmt::format("Of {} cells, {} are wrong entirely and {} partly; they lie in line{} and column{}.",
                     all, wrong, partly, range(top, bottom), range(left, right));
}

}  // namespace

MapBlock map_of(const Diagnosis& diagnosis) {
  MapBlock map{diagnosis.map_of, {}};
  for (const std::string& line : diagnosis.map)
    if (map.lines.size() < std::size_t{kMapLines}) map.lines.push_back(levels_of(line));
  return map;
}

std::string svg_of(const MapBlock& map) {
  const std::size_t columns = columns_of(map), lines = map.lines.size();
  std::string svg = fmt::format(
      "<svg class=\"map\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\">",
      in_words(map), columns * kWide, lines * kHigh, columns * kWide, lines * kHigh);
  for (char level = '0'; level <= '4'; ++level)
    if (const std::string path = outline_of(map, level); !path.empty())
      svg += fmt::format("<path class=\"wrong-{}\" d=\"{}\"/>", level, path);
  return svg + fmt::format("<path class=\"grid\" d=\"{}\"/></svg>", grid_of(columns, lines));
}

std::string text_of(const MapBlock& map) {
  std::string text;
  for (const std::string& line : map.lines) {
    for (const char level : line)
      if (level == kNoCell)
        text += ' ';
      else
        text += kMapCells[static_cast<std::size_t>(level - '0')];
    text += '\n';
  }
  return text;
}

}  // namespace capstone
