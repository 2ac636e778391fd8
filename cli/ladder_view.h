#pragma once
// A ladder drawn as a ladder view.
#include <string>

#include "cli/terminal.h"
#include "harness/analysis/ladder/ladder.h"

namespace capstone::cli {

/// Heading, table and notes. @param recorded  measured elsewhere: the text says so
std::string ladder_text(const Ladder& ladder, const Terminal& terminal, bool recorded);

/// The geometric means over the sizes of the ladders, one line for each rung; empty if no rung has two.
std::string over_sizes_text(const std::vector<Ladder>& ladders, const Terminal& terminal);

inline constexpr int kAxisCells = 20;

/// The time as a dot on a logarithmic axis, because naive rungs are hundreds of times slower. A bar would
/// have a length that no time has.
std::string time_dot(double ms, double slowest, double fastest, int cells = kAxisCells);
/// "51.60" TFLOP/s or "2731" GB/s, without its unit.
std::string figure(const Ladder& ladder, const LadderStep& step);
/// The title with its sizes; and where, when and against which library it was measured.
std::string ladder_heading(const Ladder& ladder);
std::string ladder_origin(const Ladder& ladder);

}  // namespace capstone::cli
