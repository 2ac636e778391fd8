#include "harness/workflows/submit.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

struct SubmitArguments {
  bool dry_run = false, allow_secrets = false;
  std::string out;
};

void show_plan(const SubmissionPlan& plan, const Terminal& t) {
  for (const SubmissionFile& file : plan.files)
    t.out(fmt::format("  {:>9}  {}{}", format_bytes(double(file.content.size())), file.path,
                      file.masked ? fmt::format("  ({} names masked)", file.masked) : ""));
  for (const SkippedFile& file : plan.skipped)
    t.out(t.paint(Tone::kDim, fmt::format("  left out   {}  ({})", file.path, file.reason)));
  for (const SubmissionFinding& finding : plan.findings) {
    const bool secret = finding.kind == SubmissionFinding::Kind::kSecret;
    t.say(fmt::format("{}: {} ({})", secret ? "secret" : "note", finding.what, finding.where));
    if (!finding.hint.empty()) t.say("  " + finding.hint);
  }
}

Result<ExitCode> submit(const Context& context, const SubmitArguments& arguments) {
  CAPSTONE_TRY(const SubmissionPlan plan, workflows::plan_submission_here(arguments.allow_secrets, context));
  const Terminal& t = context.terminal;
  show_plan(plan, t);
  const bool refused = workflows::first_secret(plan) && !arguments.allow_secrets;
  if (!refused) t.out(fmt::format("{} files, {}", plan.files.size(), format_bytes(double(plan.bytes))));
  if (arguments.dry_run && !refused) {
    t.out("nothing was written (--dry-run)");
    return ExitCode::kDone;
  }
  CAPSTONE_TRY(const Receipt receipt,
               workflows::submit(plan, arguments.allow_secrets, arguments.out, context));
  t.out(fmt::format("{}  {}  sha256 {}", receipt.file.string(), format_bytes(double(receipt.bytes)),
                    receipt.sha256));
  return ExitCode::kDone;
}

}  // namespace

void add_submit(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("submit", "pack the project to hand it in");
  auto arguments = std::make_shared<SubmitArguments>();
  command->add_flag("--dry-run", arguments->dry_run, "list every file, write nothing");
  command->add_flag("--allow-secrets", arguments->allow_secrets, "pack even if something looks like a key");
  command->add_option("--out", arguments->out, "the archive to write");
  command->callback([&context, &action, arguments] {
    action = [&context, arguments] { return submit(context, *arguments); };
  });
}

}  // namespace capstone::cli
