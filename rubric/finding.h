#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

enum class Severity {
  kMissing,        ///< something that is graded is missing
  kContradiction,  ///< two things in the project do not agree
  kAdvice,         ///< a suggestion that would improve the work
};
std::string_view name_of(Severity severity);  ///< "missing", "contradiction", "advice"

/// One thing that the author should look at before handing in.
struct Finding {
  int section = 0;  ///< 1 … 5: a section of the worklog; 0: the whole project
  Severity severity = Severity::kAdvice;
  std::string what;   ///< one line, no trailing period
  std::string where;  ///< "worklog.md:31", "human/kernel.cu", ".capstone/ledger.jsonl"
  std::string hint;   ///< what to do about it
};

}  // namespace capstone
