#include "harness/workflows/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"

namespace capstone::cli {
namespace {

Result<ExitCode> report(const Context& context, const std::string& out) {
  CAPSTONE_TRY(const auto outcome, workflows::report(out, context));
  for (const auto& file : outcome.files) context.terminal.out(file.string());
  if (outcome.missing || outcome.contradictions)
    context.terminal.say(fmt::format("{} missing, {} contradictory: capstone check lists them",
                                     outcome.missing, outcome.contradictions));
  else
    context.terminal.say("next: capstone check, then: capstone submit");
  return ExitCode::kDone;
}

}  // namespace

void add_report(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("report", "render the worklog and the score sheet into report/");
  auto out = std::make_shared<std::string>();
  command->add_option("--out", *out, "another folder");
  command->callback([&context, &action, out] { action = [&context, out] { return report(context, *out); }; });
}

}  // namespace capstone::cli
