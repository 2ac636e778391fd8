#pragma once
// An explanation as a person reads it in a terminal.
#include <string>

#include "cli/terminal.h"
#include "harness/model/explanation.h"

namespace capstone::cli {

/// The lines that matter, the totals, and the three dearest lines in words.
std::string explanation_text(const Explanation& explanation, const Terminal& terminal);

/// The predicted time with its parts, as `explain --on` and `profile` show it.
std::string predicted_text(const ModelledFloor& floor, const Terminal& terminal);

}  // namespace capstone::cli
