#pragma once
// The ledger as lines of text. Private to harness/project/ledger.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

/// One non-blank line of a ledger's bytes.
struct Line {
  std::size_t number = 0;  ///< counted from 1, blank lines included
  std::size_t offset = 0;  ///< of its first byte in the file
  std::string_view text;   ///< without its line end
  bool ended = false;      ///< a newline follows
};

/// Every line that is not blank. A carriage return before the newline is not part of a line: a checkout that
/// converted line ends is not damage.
std::vector<Line> lines_of(std::string_view bytes);

/// The last line that is not blank and begins before `end`; none if there is no such line. Its number is not
/// set.
std::optional<Line> last_line(std::string_view bytes, std::size_t end);

/// The fields of a record that the chain needs.
struct Header {
  int schema = 1;
  std::int64_t seq = 0;
  std::string kind, machine, previous;
};

/// Reads a record's header and stops before its body, which may be 50 KB of samples. None: not a record (not
/// a JSON object, or without seq, kind or machine).
std::optional<Header> header_of(std::string_view line);

/// Whether the text is exactly one JSON value.
bool is_whole_json(std::string_view line);

}  // namespace capstone
