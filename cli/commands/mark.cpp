// `mark`: the marks that mentors give.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/workflows/mark_sheets.h"

namespace capstone::cli {
namespace {

struct MarkArguments {
  std::string name, cohort = "graded", criterion, reason, from, grader, member;
  std::optional<double> points;
  bool next = false, take = false;
};

Result<ExitCode> mark_next(const Context& context, workflows::OpenCohort& cohort,
                           const MarkArguments& arguments, const std::string& grader) {
  if (context.editor.empty())
    return fail("no editor", {},
                "set VISUAL or EDITOR, for example EDITOR=nano; or give marks with --from marks.csv",
                ExitCode::kEnvironment);
  workflows::MarkingRound round{arguments.name, grader, arguments.take, {}};
  round.edit = [&](const fs::path& sheet) -> Result<void> {
    const std::string command = context.editor + " '" + replace_all(sheet.string(), "'", "'\\''") + "'";
    if (std::system(command.c_str()) == 0) return {};
    return fail("the editor failed: " + context.editor, sheet.string(),
                "the sheet is kept; run the command again");
  };
  CAPSTONE_TRY(const auto outcome, workflows::mark_sheets(cohort, round, context.progress()));
  const std::string done = outcome.marked ? fmt::format("{} marked; ", outcome.marked) : "";
  context.terminal.out(outcome.stopped_at.empty()
                           ? done + "nothing waits for marks"
                           : fmt::format("{}: no marks; the next time begins here", outcome.stopped_at));
  if (outcome.second)
    context.terminal.out(
        fmt::format("second markings to do: {}; give them in the browser: capstone serve; or "
                    "in the blind copies of `gradebook assign`",
                    outcome.second));
  return ExitCode::kDone;
}

Result<ExitCode> mark(const Context& context, const MarkArguments& arguments) {
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  const std::string grader = arguments.grader.empty() ? context.user : arguments.grader;
  if (arguments.next) return mark_next(context, cohort, arguments, grader);
  CAPSTONE_TRY(Comments comments, cohort.comments());
  std::vector<Mark> marks;
  if (!arguments.from.empty()) {
    const fs::path file = context.cwd / arguments.from;
    CAPSTONE_TRY(std::string text, read_file(file, 64u << 20));
    CAPSTONE_TRY(marks, read_marks(text, file.string(), grader, comments));
  } else {
    if (arguments.name.empty() || arguments.criterion.empty() || !arguments.points)
      return fail(
          "nothing to mark", {},
          "capstone mark NAME --criterion ID --points N --reason TEXT; or --next; or --from marks.csv");
    Mark one;
    one.submission = arguments.name;
    one.criterion = arguments.criterion;
    one.points = *arguments.points;
    one.grader = grader;
    CAPSTONE_TRY(one.reason,
                 reason_of(arguments.reason, (cohort.folder / "comments.yaml").string(), comments));
    if (!arguments.member.empty()) one.member = arguments.member;
    marks.push_back(std::move(one));
  }
  CAPSTONE_TRY(const auto notes, workflows::give_marks(cohort, marks));
  for (const std::string& note : notes) context.terminal.say("note: " + note);
  context.terminal.out(fmt::format("{} mark{} kept as draft{}; `capstone gradebook publish` shows them",
                                   marks.size(), marks.size() == 1 ? "" : "s", marks.size() == 1 ? "" : "s"));
  return ExitCode::kDone;
}

}  // namespace

void add_mark(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("mark", "for mentors: give marks; drafts until `gradebook publish`");
  auto a = std::make_shared<MarkArguments>();
  command->add_option("name", a->name, "the submission, or a person's name, id or e-mail address");
  add_cohort_option(*command, a->cohort);
  command->add_option("--criterion", a->criterion,
                      "a criterion of the rubric: correctness, depth, head_to_head, honesty");
  command->add_option("--points", a->points, "0 to the criterion's weight");
  command->add_option("--reason", a->reason,
                      "what the student will read; @name inserts a comment of COHORT/comments.yaml");
  command->add_option("--member", a->member, "of a team: only this member (id, or name without an id)");
  command->add_option(
      "--grader", a->grader,
      "who gives the mark (default: your user name); a name of `grader list`, if there are any");
  auto* next = command->add_flag("--next", a->next,
                                 "claim and open a sheet for each submission that waits for marks ($VISUAL "
                                 "or $EDITOR); failed ones last");
  command->add_flag("--take", a->take, "with NAME --next: also if another grader has the sheet open")
      ->needs(next);
  command
      ->add_option("--from", a->from, "a CSV with name,criterion,points,reason; all rows or none are taken")
      ->excludes(next);
  command->callback([&context, &action, a] { action = [&context, a] { return mark(context, *a); }; });
}

}  // namespace capstone::cli
