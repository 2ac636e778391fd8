#include "harness/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "harness/base/ascii.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

bool is_number(std::string_view text) {
  if (text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return false;
  const std::string copy(text);
  char* end = nullptr;
  std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size();
}

bool looks_like_formula(std::string_view text) {
  return !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos &&
         !is_number(text);
}

std::string_view without_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file, char separator)
      : text_(without_mark(text)), file_(file), separator_(separator) {}

  Result<std::vector<CsvRow>> read() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      CsvRow row;
      row.line = line_;
      for (bool more = true; more;) {
        CAPSTONE_TRY(std::string cell, cell_here());
        row.cells.push_back(std::move(cell));
        more = at_ < text_.size() && text_[at_] == separator_;
        if (more) ++at_;
      }
      end_of_line();
      if (row.cells.size() > 1 || !row.cells.front().empty()) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  Result<std::string> cell_here() {
    std::string cell;
    if (at_ >= text_.size() || text_[at_] != '"') {
      while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' && text_[at_] != '\r')
        cell += text_[at_++];
      strip_guard(cell);
      return cell;
    }
    const int opened = line_;
    for (++at_;; ++at_) {
      if (at_ >= text_.size())
        return fail("a quotation mark is never closed", fmt::format("{}:{}", file_, opened),
                    "write a quotation mark inside a cell twice");
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        cell += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += '"';
        ++at_;
      } else {
        break;
      }
    }
    ++at_;
    if (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' && text_[at_] != '\r')
      return fail("text follows a closing quotation mark", fmt::format("{}:{}", file_, line_),
                  "write a quotation mark inside a cell twice");
    strip_guard(cell);
    return cell;
  }

  static void strip_guard(std::string& cell) {
    if (cell.size() > 1 && cell[0] == '\'' && looks_like_formula(std::string_view(cell).substr(1)))
      cell.erase(0, 1);
  }

  void end_of_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
  }

  std::string_view text_;
  const std::string& file_;
  char separator_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::string csv_row(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string text = to_utf8(cells[i]);
    if (looks_like_formula(text)) text.insert(text.begin(), '\'');
    if (text.find_first_of(",\"\n\r") != std::string::npos)
      text = "\"" + replace_all(text, "\"", "\"\"") + "\"";
    if (i) line += ',';
    line += text;
  }
  return line + "\r\n";
}

char csv_separator(std::string_view first_line) {
  char best = ',';
  for (char candidate : {';', '\t'})
    if (std::count(first_line.begin(), first_line.end(), candidate) >
        std::count(first_line.begin(), first_line.end(), best))
      best = candidate;
  return best;
}

Result<std::vector<CsvRow>> read_csv(std::string_view text, const std::string& file, char separator) {
  return CsvReader(text, file, separator).read();
}

Result<CsvTable> CsvTable::read(std::string_view text, const std::string& file,
                                const std::vector<std::string>& required) {
  const std::string_view all = trim(without_mark(text));
  CAPSTONE_TRY(auto rows, read_csv(text, file, csv_separator(all.substr(0, all.find('\n')))));
  CsvTable table;
  if (rows.empty())
    return fail("an empty table", file, "the first line must name the columns: " + join(required, ","));
  for (const std::string& name : rows.front().cells) table.columns_.push_back(ascii_lower(trim(name)));
  for (const std::string& name : required) {
    auto times = std::count(table.columns_.begin(), table.columns_.end(), name);
    if (times == 0)
      return fail("no column '" + name + "'", fmt::format("{}:{}", file, rows.front().line),
                  "the columns are: " + join(table.columns_, ", "));
    if (times > 1)
      return fail("column '" + name + "' appears twice", fmt::format("{}:{}", file, rows.front().line),
                  "rename one of them");
  }
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].cells.size() > table.columns_.size())
      return fail(fmt::format("{} cells, but {} columns", rows[i].cells.size(), table.columns_.size()),
                  fmt::format("{}:{}", file, rows[i].line),
                  "put a cell that contains the separator in quotation marks");
  table.rows_.assign(std::make_move_iterator(rows.begin() + 1), std::make_move_iterator(rows.end()));
  return table;
}

bool CsvTable::has(std::string_view column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

std::string CsvTable::at(std::size_t row, std::string_view column) const {
  auto found = std::find(columns_.begin(), columns_.end(), column);
  auto place = static_cast<std::size_t>(found - columns_.begin());
  return place < rows_[row].cells.size() ? std::string(trim(rows_[row].cells[place])) : std::string();
}

}  // namespace capstone
