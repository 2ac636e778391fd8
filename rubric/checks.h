#pragma once
// The machine checks that a rubric may name. Private to this library.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rubric/rubric.h"

namespace capstone::detail {

/// What a check found.
struct Fact {
  double met = 0;                     ///< [0, 1]
  bool applies = true;
  std::string text;
  std::vector<std::int64_t> records;
};

/// Everything that checks look at.
struct Sources {
  const Project& project;
  const LedgerView& ledger;
  const Worklog& worklog;
  const Rejudged* rejudged = nullptr;   ///< null: not graded, only looked at
};

/// Whether a text names a version: "v1" stands in "v1 and v2", not in "v10".
bool names(std::string_view text, std::string_view version);

using CheckFunction = Fact (*)(const Sources&);
const std::map<std::string, CheckFunction>& checks();

}  // namespace capstone::detail
