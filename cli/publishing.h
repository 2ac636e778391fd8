#pragma once
// The subcommands of `gradebook` that decide what counts and what students see.
#include "cli/context.h"

namespace capstone::cli {

/// `publish`, `choose`, `drop`. Each sets the action itself.
void add_publishing(CLI::App& gradebook, Context& context, Action& action);

/// Whether one of them was given on the command line.
bool chose_publishing(const CLI::App& gradebook);

}  // namespace capstone::cli
