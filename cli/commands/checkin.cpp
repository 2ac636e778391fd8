// `checkin`: a small file for the mentor.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "harness/workflows/submit.h"

namespace capstone::cli {
namespace {

struct CheckInArguments {
  std::string stuck, out;
};

Result<ExitCode> checkin(const Context& context, const CheckInArguments& arguments) {
  CAPSTONE_TRY(const auto outcome, workflows::check_in_here(arguments.stuck, arguments.out, context));
  const CheckIn& made = outcome.checkin;
  const Terminal& t = context.terminal;
  if (context.json) {
    t.out(Json::parse(checkin_text(made)).dump(2));
    return ExitCode::kDone;
  }
  t.out(fmt::format(
      "{} records, {} version{} measured, {} attempt{} of the model{}", made.records, made.versions,
      made.versions == 1 ? "" : "s", made.attempts, made.attempts == 1 ? "" : "s",
      made.last_verdict.empty() ? "" : fmt::format("; {}: {}", made.last_version, made.last_verdict)));
  if (made.stuck.empty())
    t.say(
        "note: if you are stuck, say where: capstone checkin --stuck \"the second tile is wrong and I cannot "
        "see why\"");
  t.out(fmt::format("{}\nnext: hand this file to your mentor; it holds no code", outcome.file.string()));
  return ExitCode::kDone;
}

}  // namespace

void add_checkin(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "checkin", "write a small file for your mentor: your progress, and where you are stuck");
  auto arguments = std::make_shared<CheckInArguments>();
  command->add_option("--stuck", arguments->stuck,
                      "where you are stuck, in your words; also kept in the ledger");
  command->add_option("--out", arguments->out, "the file (default checkin-ID-PROBLEM.json here)");
  add_format(*command, context);
  command->callback([&context, &action, arguments] {
    action = [&context, arguments] { return checkin(context, *arguments); };
  });
}

}  // namespace capstone::cli
