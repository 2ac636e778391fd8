#pragma once
// A ladder for a class: one rung at a time, a guess before each answer.
#include <istream>

#include "cli/terminal.h"
#include "harness/analysis/ladder/ladder.h"

namespace capstone::cli {

/// Shows the timed rungs one after the other. Before each except the first it reads a guess: how many times
/// faster the rung is. An empty line is no guess; the end of the input ends the show.
Result<void> live_ladder(const Ladder& ladder, bool recorded, const Terminal& terminal, std::istream& room);

/// Digits, '.', 'x', '%' and blanks, five lines high.
std::string large_type(const std::string& text);

}  // namespace capstone::cli
