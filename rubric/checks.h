#pragma once
// The machine checks that a rubric may name. Private to this library.
#include <map>
#include <string>
#include <vector>

#include "rubric/rubric.h"

namespace capstone::detail {

/// What a check found.
struct Fact {
  double met = 0;                     ///< [0, 1]
  bool applies = true;
  std::string text;
  std::vector<std::int64_t> records;
  std::string ask{};                  ///< what a mentor should ask because of it
};

/// Everything that checks look at.
struct Sources {
  const Project& project;
  const LedgerView& ledger;
  const Worklog& worklog;
  const Rejudged* rejudged = nullptr;   ///< null: not graded, only looked at
};

using CheckFunction = Fact (*)(const Sources&);
const std::map<std::string, CheckFunction>& checks();

}  // namespace capstone::detail
