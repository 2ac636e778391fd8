#include "harness/course/gradebook/cell_table.h"

#include <fmt/format.h>

#include "harness/base/ascii.h"
#include "harness/base/csv.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";

}  // namespace

Result<CellTable> CellTable::read(std::string text, const std::string& file) {
  if (!is_utf8(text)) return fail("the file is not UTF-8", file, "export it again as UTF-8");
  CellTable table;
  table.text_ = std::move(text);
  const std::string_view all = table.text_;
  std::size_t at = all.starts_with(kMark) ? kMark.size() : 0;
  table.separator_ = csv_separator(all.substr(at, all.find('\n', at) - at));
  int line = 1;
  auto ends_cell = [&](std::size_t i) {
    return i >= all.size() || all[i] == table.separator_ || all[i] == '\n' || all[i] == '\r';
  };
  while (at < all.size()) {
    std::vector<Span> row;
    for (;;) {
      const std::size_t begin = at;
      if (at < all.size() && all[at] == '"') {
        const int opened = line;
        for (++at;; ++at) {
          if (at >= all.size())
            return fail("a quotation is opened but never closed", fmt::format("{}:{}", file, opened),
                        "export the file again");
          line += all[at] == '\n';
          if (all[at] != '"') continue;
          if (at + 1 < all.size() && all[at + 1] == '"')
            ++at;
          else
            break;
        }
        ++at;
      }
      while (!ends_cell(at)) ++at;  // text after a closing quote also belongs to the cell and is kept
      row.push_back({begin, at});
      if (at >= all.size() || all[at] != table.separator_) break;
      ++at;
    }
    if (at < all.size() && all[at] == '\r') ++at;
    if (at < all.size() && all[at] == '\n') ++at;
    if (row.size() > 1 || row[0].begin != row[0].end) {
      if (!table.rows_.empty() && row.size() != table.rows_[0].size())
        return fail(fmt::format("{} cells, but {} columns", row.size(), table.rows_[0].size()),
                    fmt::format("{}:{}", file, line),
                    "export the file again; a spreadsheet may have changed it");
      table.rows_.push_back(std::move(row));
    }
    ++line;
  }
  if (table.rows_.empty()) return fail("the file is empty", file, "export it again");
  return table;
}

std::string CellTable::at(std::size_t row, std::size_t column) const {
  std::string cell =
      text_.substr(rows_[row][column].begin, rows_[row][column].end - rows_[row][column].begin);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
    cell = replace_all(cell.substr(1, cell.size() - 2), "\"\"", "\"");
  return std::string(trim(cell));
}

std::optional<std::size_t> CellTable::column(std::string_view heading) const {
  for (std::size_t c = 0; c < rows_[0].size(); ++c)
    if (ascii_lower(at(0, c)) == heading) return c;
  return std::nullopt;
}

void CellTable::set(std::size_t row, std::size_t column, const std::string& value) {
  std::string cell = csv_row({value});
  cell.resize(cell.size() - 2);  // removes the line end
  if (cell.front() != '"' && cell.find(separator_) != std::string::npos) cell = '"' + cell + '"';
  changes_[rows_[row][column].begin] = {rows_[row][column].end, cell};
}

std::string CellTable::text() const {
  std::string out;
  std::size_t at = 0;
  for (const auto& [begin, change] : changes_) {
    out += text_.substr(at, begin - at) + change.second;
    at = change.first;
  }
  return out + text_.substr(at);
}

}  // namespace capstone
