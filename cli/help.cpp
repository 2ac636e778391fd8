#include "cli/help.h"

#include <CLI/CLI.hpp>

#include "harness/base/text.h"

namespace capstone::cli {

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  return app.get_subcommands(
      [](const CLI::App* sub) { return !sub->get_name().empty() && !sub->get_group().empty(); });
}

std::string fold_help(const std::string& text, const Terminal& terminal) {
  constexpr std::size_t kColumn = 30;  // where CLI11 begins the descriptions
  std::vector<std::string> lines = split(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) line = terminal.fold(line, line.starts_with("  ") ? kColumn : 0);
  return join(lines, "\n");
}

}  // namespace capstone::cli
