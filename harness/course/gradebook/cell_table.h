#pragma once
// A CSV file in which some cells are replaced while every other byte stays the same: line ends, quotes,
// byte-order mark. Private to the exports.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

class CellTable {
 public:
  /// Reads a table. The separator is the most frequent of comma, semicolon and tab in the first line.
  /// @error not UTF-8; an empty file; a row with more or fewer cells than the heading; a quotation that is
  ///        not closed. The position is file:line.
  static Result<CellTable> read(std::string text, const std::string& file);

  std::size_t rows() const { return rows_.size(); }  ///< including the heading
  std::size_t columns() const { return rows_[0].size(); }
  /// The value of a cell, without quotes and surrounding space.
  std::string at(std::size_t row, std::size_t column) const;
  /// The index of the column with this heading, ignoring case; empty when there is none.
  std::optional<std::size_t> column(std::string_view lower_case_heading) const;
  /// Replaces a cell. Quotes the value if necessary, and defuses spreadsheet formulas.
  void set(std::size_t row, std::size_t column, const std::string& value);
  /// The file with the replaced cells.
  std::string text() const;

 private:
  struct Span {
    std::size_t begin, end;
  };  // the cell in the file, with its quotes
  std::string text_;
  char separator_ = ',';
  std::vector<std::vector<Span>> rows_;
  std::map<std::size_t, std::pair<std::size_t, std::string>> changes_;  // begin → (end, bytes)
};

}  // namespace capstone
