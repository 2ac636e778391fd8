#pragma once
// Commands over many submissions or problems.
#include "cli/context.h"

namespace capstone::cli {

void add_appeal(CLI::App& app, Context& context, Action& action);
void add_class_views(CLI::App& app, Context& context, Action& action);   ///< leaderboard, present, certificate, handout
void add_export(CLI::App& app, Context& context, Action& action);
void add_kernelbench(CLI::App& app, Context& context, Action& action);
void add_replay(CLI::App& app, Context& context, Action& action);

}  // namespace capstone::cli
