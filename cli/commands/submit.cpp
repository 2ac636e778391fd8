#include "harness/project/archive/submission.h"

#include <fmt/format.h>

#include "cli/output_path.h"
#include "cli/context.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

struct SubmitArguments {
  bool dry_run = false, allow_secrets = false;
  std::string out;
};

Result<ExitCode> submit(const Context& context, const SubmitArguments& arguments) {
  CAPSTONE_TRY(Project project, project_here(context));
  SubmissionOptions options;
  options.identity = {context.user, context.home, context.host};
  options.allow_secrets = arguments.allow_secrets;
  CAPSTONE_TRY(SubmissionPlan plan, plan_submission(project, options));
  const Terminal& t = context.terminal;
  for (const SubmissionFile& file : plan.files)
    t.out(fmt::format("  {:>9}  {}{}", format_bytes(double(file.content.size())), file.path,
                      file.masked ? fmt::format("  ({} names masked)", file.masked) : ""));
  for (const SkippedFile& file : plan.skipped) t.out(t.paint(Tone::kDim, fmt::format("  left out   {}  ({})", file.path, file.reason)));
  const SubmissionFinding* secret = nullptr;
  for (const SubmissionFinding& finding : plan.findings) {
    if (finding.kind == SubmissionFinding::Kind::kSecret && !secret) secret = &finding;
    t.say(fmt::format("{}: {} ({})", finding.kind == SubmissionFinding::Kind::kSecret ? "secret" : "note", finding.what, finding.where));
    if (!finding.hint.empty()) t.say("  " + finding.hint);
  }
  if (secret && !arguments.allow_secrets)
    return fail("something in the project looks like a key: " + secret->what, secret->where,
                "take it out (and revoke it); if it is harmless: --allow-secrets");
  t.out(fmt::format("{} files, {}", plan.files.size(), format_bytes(double(plan.bytes))));
  if (arguments.dry_run) {
    t.out("nothing was written (--dry-run)");
    return ExitCode::kDone;
  }
  CAPSTONE_TRY(const fs::path out, output_path(context, arguments.out.empty() ? plan.prefix + ".tar.gz" : arguments.out, Output::kArchive));
  CAPSTONE_TRY(Receipt receipt, write_submission(plan, out));
  t.out(fmt::format("{}  {}  sha256 {}", receipt.file.string(), format_bytes(double(receipt.bytes)), receipt.sha256));
  return ExitCode::kDone;
}

}  // namespace

void add_submit(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("submit", "pack the project to hand it in");
  auto arguments = std::make_shared<SubmitArguments>();
  command->add_flag("--dry-run", arguments->dry_run, "list every file, write nothing");
  command->add_flag("--allow-secrets", arguments->allow_secrets, "pack although something looks like a key");
  command->add_option("--out", arguments->out, "the archive to write");
  command->callback([&context, &action, arguments] { action = [&context, arguments] { return submit(context, *arguments); }; });
}

}  // namespace capstone::cli
