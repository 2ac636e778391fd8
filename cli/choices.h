#pragma once
// Options whose value is one of a few names: what the help says, and what is said of another.
#include <string>

#include <CLI/CLI.hpp>

#include "harness/judge/judge.h"

namespace capstone::cli {

/// --backend auto|cuda|emulated
CLI::Option* add_backend(CLI::App& command, Backend& backend, const std::string& help);
/// --execution auto|host|replayed
CLI::Option* add_execution(CLI::App& command, Execution& execution, const std::string& help);

}  // namespace capstone::cli
