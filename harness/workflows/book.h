#pragma once
// `book`: a static site with a page for each rung of each ladder.
#include <string>
#include <vector>

#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct BookRequest {
  std::string folder;                 ///< where it is written; new, empty, or an earlier book
  std::vector<std::string> problems;  ///< whose ladders; empty: all
  bool counts = false;                ///< also count what each line costs; takes minutes for all ladders
};

struct Book {
  std::filesystem::path index;
  std::size_t ladders = 0, rungs = 0;
  std::vector<std::string> notes;  ///< rungs that the emulator could not count, and why
};

/// Writes index.html, a page for each rung, and one for each ladder that has recorded times.
/// @error an unknown problem; a folder that holds something other than a book.
Result<Book> write_book(const BookRequest& request, const Workspace& workspace, const ProgressSink& progress);

}  // namespace capstone::workflows
