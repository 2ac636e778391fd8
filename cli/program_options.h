#pragma once
// The options of `run` and `explain` that say how a whole program is built and limited.
#include "harness/runtime/build/run_program.h"

namespace CLI {
class App;
}

namespace capstone::cli {

/// `request` lives as long as the command.
void add_program_options(CLI::App& command, ProgramRequest& request);

}  // namespace capstone::cli
