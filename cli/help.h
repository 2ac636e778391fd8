#pragma once
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace CLI {
class App;
}

namespace capstone::cli {

/// The subcommands that help and completion show: without those that are only for capstone itself.
std::vector<const CLI::App*> visible_commands(const CLI::App& app);

/// A help text with its descriptions folded in their own column, where the terminal is narrower.
std::string fold_help(const std::string& text, const Terminal& terminal);

}  // namespace capstone::cli
