#pragma once
// Commands over many submissions or problems.
#include "cli/session.h"

namespace capstone::cli {

void add_appeal(CLI::App& app, Session& session, Action& action);
void add_class_views(CLI::App& app, Session& session, Action& action);   ///< leaderboard, present, certificate, handout
void add_export(CLI::App& app, Session& session, Action& action);
void add_kernelbench(CLI::App& app, Session& session, Action& action);
void add_replay(CLI::App& app, Session& session, Action& action);

}  // namespace capstone::cli
