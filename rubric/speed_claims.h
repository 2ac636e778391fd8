#pragma once
// Finds claims about speed in a text, in any of the usual wordings.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

/// Where a paragraph is. A number in the plan (section 1), or in a column or row with the heading "expected",
/// is a prediction.
struct ProseContext {
  int section = 0;
  std::string column = {};
  std::string row = {};             ///< the first cell of a table's row
  std::string_view with_code = {};  ///< the searched text with what its code spans say; empty: has none
};

struct SpeedClaim {
  std::size_t begin = 0, end = 0;  ///< [B] in the searched text
  std::string text;                ///< as written
  std::vector<double> ratios;      ///< what it may mean: "30 % less" is 0.7, "30 % more" 1.3
  double slack = 0.05;             ///< relative; words like "seven" are rounder than numbers
  std::string sentence;            ///< around it
};

/// The claims of one paragraph, in order: "7.3x", "by a factor of 7.3", "7.3 times the speed", "7.3-fold",
/// "630 % faster", "86 % less time", "in 14 % of the time", "a speedup of 7.3", "from 8 ms to 1.1 ms",
/// "seven times faster", "twice as fast", "half the time", and a bare number in a column of speedups.
/// Predictions, bounds and factors of something else (bytes, tiles, registers) are left out.
std::vector<SpeedClaim> speed_claims(std::string_view prose, const ProseContext& context);

}  // namespace capstone
