#pragma once
// A ladder in front of a room: one rung at a time, the room's guess before the answer.
#include <istream>

#include "cli/terminal.h"
#include "harness/analysis/ladder/ladder.h"

namespace capstone::cli {

/// Shows the timed rungs one after the other. Before each but the first a line is read: how many times faster the room believes it to be; an
/// empty line is no guess, the end of the input ends the show.
Result<void> live_ladder(const Ladder& ladder, bool recorded, const Terminal& terminal, std::istream& room);

/// Digits, '.', 'x', '%' and blanks, five lines high.
std::string large_type(const std::string& text);

}  // namespace capstone::cli
