#pragma once
// A CSV file in which some cells are replaced and every other byte stays: line ends, quoting, byte-order mark. Private to the exports.
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
  /// The separator is whichever of comma, semicolon and tab stands most often in the first line.
  /// @error not UTF-8, no line, a row of another length than the heading, a quotation that never ends: file:line.
  static Result<CellTable> read(std::string text, const std::string& file);

  std::size_t rows() const { return rows_.size(); }                          ///< with the heading
  std::size_t columns() const { return rows_[0].size(); }
  /// Unquoted and trimmed.
  std::string at(std::size_t row, std::size_t column) const;
  /// Of a heading, in any case; nothing: there is none.
  std::optional<std::size_t> column(std::string_view lower_case_heading) const;
  /// Quoted where it has to be, and no formula.
  void set(std::size_t row, std::size_t column, const std::string& value);
  /// The file with what was set.
  std::string text() const;

 private:
  struct Span { std::size_t begin, end; };   // of the cell as written, with its quotes
  std::string text_;
  char separator_ = ',';
  std::vector<std::vector<Span>> rows_;
  std::map<std::size_t, std::pair<std::size_t, std::string>> changes_;   // begin → (end, bytes)
};

}  // namespace capstone
