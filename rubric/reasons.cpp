#include "rubric/reasons.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace capstone {
namespace {

// Sorted. Results, the act of changing, and the small words between them.
constexpr std::array kEmpty = std::to_array<std::string_view>(
    {"a",       "again",    "an",        "and",      "another",   "attempt",  "be",          "before",
     "best",    "better",   "bit",       "change",   "changed",   "changes",  "fast",        "faster",
     "final",   "fix",      "fixed",     "i",        "improve",   "improved", "is",          "it",
     "its",     "last",     "little",    "make",     "more",      "much",     "new",         "next",
     "now",     "optimise", "optimised", "optimize", "optimized", "perf",     "performance", "quick",
     "quicker", "runs",     "slow",      "slower",   "speed",     "speedup",  "test",        "than",
     "the",     "this",     "to",        "try",      "tweak",     "up",       "update",      "version",
     "was",     "wip"});
static_assert(std::is_sorted(kEmpty.begin(), kEmpty.end()));

bool is_version(std::string_view word) {
  if (word.front() == 'v') word.remove_prefix(1);
  return std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); });
}

}  // namespace

bool names_no_cause(std::string_view reason) {
  std::string word;
  bool any = false;
  const auto says_something = [&] {
    if (word.empty()) return false;
    any = true;
    return word.size() > 1 && !is_version(word) && !std::binary_search(kEmpty.begin(), kEmpty.end(), word);
  };
  for (const char c : reason) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || byte >= 0x80) {
      word += static_cast<char>(std::tolower(byte));
      continue;
    }
    if (says_something()) return false;
    word.clear();
  }
  return !says_something() && any;
}

}  // namespace capstone
