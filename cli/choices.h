#pragma once
// Options whose value is one of a few names.
#include <string>

#include "harness/judge/judge.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace capstone::cli {

/// --backend auto|cuda|emulated
CLI::Option* add_backend(CLI::App& command, Backend& backend, const std::string& help);
/// --execution auto|in-process|replayed
CLI::Option* add_execution(CLI::App& command, Execution& execution, const std::string& help);

}  // namespace capstone::cli
