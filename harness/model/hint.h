#pragma once
// A hint that a student took (`capstone hint`). A ledger record of kind "hint".
#include <string>

#include "harness/base/json.h"

namespace capstone {

/// A problem has as many hints, from vague to exact.
inline constexpr int kHintLevels = 3;

struct TakenHint {
  int level = 0;            ///< 1 … kHintLevels
  int of = 0;               ///< how many hints the problem had
  std::string text_sha256;  ///< of the text that was shown
  // Not recorded: read_ledger() finds them in the other records.
  std::string time = {};    ///< UTC
  std::string after = {};   ///< the last version that was measured before it; empty: none
  std::string before = {};  ///< the first version that was measured after it; empty: none

  /// "hint 2 of 3, after v1 and before v2 (2026-03-01 12:00 UTC)"
  std::string told() const;
};

void to_json(Json&, const TakenHint&);
/// @throw std::invalid_argument  the level is no hint's
void from_json(const Json&, TakenHint&);

}  // namespace capstone
