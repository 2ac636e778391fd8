#pragma once
// Comma-separated values by RFC 4180, for files that spreadsheets and learning platforms read and write.
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

/// One line with its CRLF. Cells are made valid UTF-8. A cell that a spreadsheet would read as a formula (it
/// begins with = + - @, tab or carriage return) gets an apostrophe in front, which makes it text; negative
/// and signed numbers stay numbers.
std::string csv_row(const std::vector<std::string>& cells);

struct CsvRow {
  int line = 0;  ///< of the row's first character, counted from 1
  std::vector<std::string> cells;
};

/// What separates the cells of a table, by its first line: a comma, a semicolon (spreadsheets of many
/// countries) or a tab.
char csv_separator(std::string_view first_line);

/// Reads a whole file: CRLF or LF, quoted cells with line breaks, a byte-order mark, empty lines skipped. An
/// apostrophe that csv_row() added is removed again.
/// @param file  named in errors
/// @error a quotation mark that is never closed, text after a closing one: file:line.
Result<std::vector<CsvRow>> read_csv(std::string_view text, const std::string& file, char separator = ',');

/// A table with a heading, which shows the separator. Columns are found by name, in any case and order.
class CsvTable {
 public:
  /// @param required, optional  lower-case names of columns; others are ignored
  /// @error no heading; a required column is missing or appears twice (the hint lists the columns); a row
  ///   that is longer than the heading.
  static Result<CsvTable> read(std::string_view text, const std::string& file,
                               const std::vector<std::string>& required);

  std::size_t rows() const { return rows_.size(); }
  int line(std::size_t row) const { return rows_[row].line; }
  /// The cell, trimmed; empty if the file has no such column.
  std::string at(std::size_t row, std::string_view column) const;
  bool has(std::string_view column) const;
  const std::vector<std::string>& columns() const { return columns_; }

 private:
  std::vector<std::string> columns_;  ///< lower-case
  std::vector<CsvRow> rows_;
};

}  // namespace capstone
