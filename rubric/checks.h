#pragma once
// The machine checks that a rubric can name. Private to this library.
#include <map>
#include <string>
#include <vector>

#include "rubric/rubric.h"

namespace capstone::detail {

/// The result of one check.
struct Fact {
  double met = 0;                     ///< [0, 1]
  bool applies = true;                ///< false: the check does not count (no GPU, nothing failed, …)
  std::string text;                   ///< what was found, one line for the score sheet
  std::vector<std::int64_t> records;  ///< sequence numbers of the ledger's records that show it
  std::string ask{};                  ///< the question that this result raises for a mentor; empty: none
};

/// The input of every check.
struct Sources {
  const Project& project;
  const LedgerView& ledger;
  const Worklog& worklog;
  const Rejudged* rejudged = nullptr;  ///< null: the student's own score sheet; nothing was judged again
};

/// The share of a section's questions that are answered with content; an essay without the questions counts
/// if it is long enough.
double answered_share(const Sources& sources, int section);

Fact own_kernel(const Sources& sources);
Fact kernel_runs(const Sources& sources);
Fact answers_have_content(const Sources& sources);

using CheckFunction = Fact (*)(const Sources&);
/// Every check by its id, as a rubric names it.
const std::map<std::string, CheckFunction>& checks();

}  // namespace capstone::detail
