#pragma once
// Errors of the command line in capstone's own words.
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace capstone::cli {

/// @param words  the command line, without the program's name
/// @return what is wrong, with the nearest command or option where one is unknown
Error explain_parse_error(const CLI::App& app, const CLI::ParseError& problem,
                          const std::vector<std::string>& words);

/// `capstone NOSUCH --help` asks for the help of a command that does not exist. None: every command exists.
std::optional<Error> unknown_command(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace capstone::cli
