#pragma once
// A replayed case as a person reads it.
#include <string>

#include "cli/context.h"
#include "harness/workflows/replay.h"

namespace capstone::cli {

/// @param again  the command that repeats the case
ExitCode show_replay(const Context& context, const workflows::ReplayOutcome& outcome,
                     const std::string& again);

}  // namespace capstone::cli
