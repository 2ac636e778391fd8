#include "cli/help.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

Result<ExitCode> help(const Context& context, const CLI::App& app, const std::vector<std::string>& path) {
  const CLI::App* at = &app;
  for (const std::string& word : path) {
    std::vector<std::string> names;
    const CLI::App* found = nullptr;
    for (const CLI::App* sub : visible_commands(*at)) {
      names.push_back(sub->get_name());
      if (sub->check_name(word)) found = sub;
    }
    if (!found) {
      const auto meant = nearest(word, names);
      return fail("unknown command " + word, {},
                  (meant ? "did you mean `" + *meant + "`?  " : std::string()) + "run: capstone help");
    }
    at = found;
  }
  context.terminal.out(fold_help(at->help(), context.terminal));
  return ExitCode::kDone;
}

}  // namespace

void add_help(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("help", "show the help of a command");
  auto path = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *path, "such as measure, or llm add (default: all commands)");
  command->callback([&app, &context, &action, path] {
    action = [&app, &context, path] { return help(context, app, *path); };
  });
}

}  // namespace capstone::cli
