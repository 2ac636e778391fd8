#pragma once
// The ladder book: a page for each rung, and one that leads to all of them.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/analysis/explain/explain.h"
#include "harness/analysis/ladder/ladder.h"
#include "harness/base/error.h"

namespace capstone {

/// Where a rung was timed: one recorded ladder that holds it.
struct BookTimes {
  const Ladder* ladder = nullptr;
  std::size_t step = 0;  ///< which of its steps
  bool stale = false;    ///< the code has changed since
};

struct BookRung {
  Rung rung;
  std::string text;    ///< the source
  std::string before;  ///< the source of the rung below; empty for the first
  std::vector<BookTimes> times;
  std::optional<Explanation> counts;  ///< at the problem's `emulate` size
};

struct BookLadder {
  std::string problem, title;
  std::string sessions;  ///< "L4 L5"
  std::vector<BookRung> rungs;
  bool recorded = false;  ///< there is a page with its times
  Precision precision = Precision::kFp32;
};

/// The names of the files, relative to the book's folder. The ladder's own page is ladder_page()'s.
std::string book_file(const BookLadder& ladder);
std::string book_file(const BookLadder& ladder, const Rung& rung);
std::string book_counts_file(const BookLadder& ladder, const Rung& rung);

/// The first page: sessions, ladders, rungs. @error a template is missing or does not parse.
Result<std::string> book_index(const std::vector<BookLadder>& ladders, const std::string& version,
                               const std::filesystem::path& templates);
/// One rung: its idea, prediction and what came, its times and place under the roof, and its code, with what
/// is new since the rung below. @error as above.
Result<std::string> book_rung_page(const BookLadder& ladder, std::size_t rung,
                                   const std::filesystem::path& templates);

}  // namespace capstone
