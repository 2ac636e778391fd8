// `checkin`: a small file for the mentor.
#include "harness/project/checkin.h"

#include <fmt/format.h>

#include "cli/output_path.h"
#include "cli/recording.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

struct CheckInArguments { std::string stuck, out; };

Result<ExitCode> checkin(const Context& context, const CheckInArguments& arguments) {
  CAPSTONE_TRY(Project project, project_here(context));
  if (!arguments.out.empty()) CAPSTONE_CHECK(output_path(context, arguments.out, Output::kCheckIn));   // before the ledger keeps it
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(std::string machine, chain_id(context));
  CAPSTONE_TRY(CheckIn made, check_in(project, std::string(trim(arguments.stuck)), machine));
  CAPSTONE_TRY(const fs::path out, output_path(context, arguments.out.empty() ? file_name_of(made) : arguments.out, Output::kCheckIn));
  CAPSTONE_CHECK(write_file_atomic(out, checkin_text(made)));
  const Terminal& t = context.terminal;
  if (context.json) {
    t.out(Json::parse(checkin_text(made)).dump(2));
    return ExitCode::kDone;
  }
  t.out(fmt::format("{} records, {} version{} measured, {} attempt{} of the model{}", made.records, made.versions, made.versions == 1 ? "" : "s", made.attempts, made.attempts == 1 ? "" : "s",
                    made.last_verdict.empty() ? "" : fmt::format("; {}: {}", made.last_version, made.last_verdict)));
  if (made.stuck.empty()) t.say("note: stuck somewhere? Say it: capstone checkin --stuck \"the second tile is wrong and I cannot see why\"");
  t.out(fmt::format("{}\nnext: hand this file to your mentor; it holds no code", out.lexically_normal().string()));
  return ExitCode::kDone;
}

}  // namespace

void add_checkin(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("checkin", "a small file for your mentor: how far you are, and where you are stuck");
  auto arguments = std::make_shared<CheckInArguments>();
  command->add_option("--stuck", arguments->stuck, "where you are stuck, in your words; the ledger keeps it, too");
  command->add_option("--out", arguments->out, "the file (default checkin-ID-PROBLEM.json here)");
  add_format(*command, context);
  command->callback([&context, &action, arguments] { action = [&context, arguments] { return checkin(context, *arguments); }; });
}

}  // namespace capstone::cli
