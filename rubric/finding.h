#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

enum class Severity {
  kMissing,        ///< something that is graded is not there
  kContradiction,  ///< two things in the project do not agree
  kAdvice,         ///< would make the work better
};
std::string_view name_of(Severity severity);  ///< "missing", "contradiction", "advice"

/// One thing to look at before handing in.
struct Finding {
  int section = 0;        ///< 1 … 5: the worklog's section; 0: the project as a whole
  Severity severity = Severity::kAdvice;
  std::string what;       ///< one line, no trailing period
  std::string where;      ///< "worklog.md:31", "human/kernel.cu", ".capstone/ledger.jsonl"
  std::string hint;       ///< what to do about it
};

}  // namespace capstone
