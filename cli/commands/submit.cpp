#include "harness/workflows/submit.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/context.h"
#include "harness/base/text.h"
#include "harness/workflows/output_path.h"

namespace capstone::cli {
namespace {

struct SubmitArguments {
  bool dry_run = false, allow_secrets = false, anyway = false;
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

// Says what is missing; unanswered questions are counted, because `check` lists them.
void show_open_points(const std::vector<Finding>& points, const Terminal& t) {
  const auto is_question = [](const Finding& f) { return f.what.starts_with("not answered: "); };
  for (const Finding& f : points) {
    if (is_question(f)) continue;
    t.say(fmt::format("{}: {}{}", name_of(f.severity), f.what,
                      f.where.empty() ? "" : fmt::format(" ({})", f.where)));
    if (!f.hint.empty()) t.say("  " + f.hint);
  }
  if (const auto questions = std::count_if(points.begin(), points.end(), is_question))
    t.say(
        fmt::format("missing: {} {} of the worklog {} not answered (worklog.md)\n  capstone check lists them",
                    questions, questions == 1 ? "question" : "questions", questions == 1 ? "is" : "are"));
}

Result<ExitCode> submit(const Context& context, const SubmitArguments& arguments) {
  CAPSTONE_TRY(const SubmissionPlan plan, workflows::plan_submission_here(arguments.allow_secrets, context));
  const Terminal& t = context.terminal;
  show_plan(plan, t);
  CAPSTONE_TRY(const std::vector<Finding> points, workflows::open_points_here(context));
  show_open_points(points, t);
  const bool refused = workflows::first_secret(plan) && !arguments.allow_secrets;
  if (!refused) t.out(fmt::format("{} files, {}", plan.files.size(), format_bytes(double(plan.bytes))));
  if (arguments.dry_run && !refused) {
    t.out("nothing was written (--dry-run)");
    return ExitCode::kDone;
  }
  if (!arguments.out.empty())
    CAPSTONE_CHECK(workflows::output_path(context, arguments.out, workflows::Output::kArchive));
  if (!points.empty() && !arguments.anyway && !refused)
    return fail(fmt::format("{} {} missing or contradictory; nothing was written", points.size(),
                            points.size() == 1 ? "point is" : "points are"),
                {}, "mend what you can; to hand it in as it is: capstone submit --anyway",
                ExitCode::kGateOneFailed);
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
  command->add_flag("--anyway", arguments->anyway, "pack although something is missing or contradictory");
  command->add_option("--out", arguments->out, "the archive to write");
  command->callback([&context, &action, arguments] {
    action = [&context, arguments] { return submit(context, *arguments); };
  });
}

}  // namespace capstone::cli
