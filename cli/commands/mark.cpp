// `mark`: the marks that mentors give.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/workflows/cohort.h"

namespace capstone::cli {
namespace {

struct MarkArguments {
  std::string name, cohort = "graded", criterion, reason, from, grader, member;
  std::optional<double> points;
  bool next = false;
};

bool wants_marks(const GradebookRow& row) {
  return row.state != "failed" && std::any_of(row.marks.begin(), row.marks.end(), [](const auto& mark) {
           return !mark || mark->earlier_version;
         });
}

// One sheet after the other, until none is left or one comes back without a mark.
Result<ExitCode> mark_next(const Context& context, workflows::OpenCohort& cohort,
                           const MarkArguments& arguments, const std::string& grader) {
  if (context.editor.empty())
    return fail("no editor", {},
                "set VISUAL or EDITOR, for example EDITOR=nano; or give marks with --from marks.csv",
                ExitCode::kEnvironment);
  CAPSTONE_TRY(Comments comments, cohort.comments());
  std::string refused;  // a sheet with a mistake, as the editor was given it
  for (int done = 0;; ++done) {
    CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
    const GradebookRow* row = nullptr;
    for (const GradebookRow& candidate : rows)
      if (!row && wants_marks(candidate) &&
          (arguments.name.empty() || arguments.name == candidate.submission))
        row = &candidate;
    if (!row) {
      context.terminal.out(done ? fmt::format("{} marked; nothing waits for marks", done)
                                : "nothing waits for marks");
      return ExitCode::kDone;
    }
    // A sheet that was left half filled in, or with a mistake, is opened again.
    const fs::path sheet = cohort.folder / "marking" / (row->submission + ".yaml");
    std::error_code code;
    CAPSTONE_CHECK(make_folders(sheet.parent_path()));
    if (!fs::exists(sheet, code))
      CAPSTONE_CHECK(write_file_atomic(
          sheet, marking_sheet(*row, cohort.rubric, cohort.evidence_of(row->submission), comments)));
    const std::string command = context.editor + " '" + replace_all(sheet.string(), "'", "'\\''") + "'";
    if (std::system(command.c_str()) != 0)
      return fail("the editor failed: " + context.editor, sheet.string(),
                  "the sheet is kept; run the command again");
    CAPSTONE_TRY(std::string text, read_file(sheet, 16u << 20));
    // A mistake opens the editor again, with what is wrong in the first line; nothing that was typed is lost.
    const auto reopen = [&](const Error& mistake) -> Result<void> {
      if (text == refused) return fail(mistake);  // it was closed without a change
      refused = with_mistake(text, mistake);
      context.terminal.say(render(mistake));
      --done;
      return write_file_atomic(sheet, refused);
    };
    auto read = read_sheet(text, sheet.string(), row->submission, grader, comments);
    if (!read) {
      CAPSTONE_CHECK(reopen(read.error()));
      continue;
    }
    std::vector<Mark> marks = std::move(*read);
    // Marks that did not change are not given again.
    std::erase_if(marks, [&](const Mark& mark) {
      return std::any_of(row->marks.begin(), row->marks.end(), [&](const auto& old) {
        return old && !old->earlier_version && old->criterion == mark.criterion &&
               old->points == mark.points && old->reason == mark.reason;
      });
    });
    if (marks.empty()) {
      context.terminal.out(fmt::format("{}: no marks; the next time begins here", row->submission));
      return ExitCode::kDone;
    }
    if (auto given = cohort.book.mark(cohort.rubric, marks); !given) {
      CAPSTONE_CHECK(reopen(given.error()));
      continue;
    }
    fs::remove(sheet, code);
    context.terminal.say(fmt::format("{}: {} marks", row->submission, marks.size()));
  }
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
  CAPSTONE_CHECK(cohort.book.mark(cohort.rubric, marks));
  context.terminal.out(fmt::format("{} mark{} kept as draft{}; `capstone gradebook publish` shows them",
                                   marks.size(), marks.size() == 1 ? "" : "s", marks.size() == 1 ? "" : "s"));
  return ExitCode::kDone;
}

}  // namespace

void add_mark(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("mark", "for mentors: give marks; drafts until `gradebook publish`");
  auto a = std::make_shared<MarkArguments>();
  command->add_option("name", a->name, "the submission, as `gradebook` lists it");
  add_cohort_option(*command, a->cohort);
  command->add_option("--criterion", a->criterion,
                      "a criterion of the rubric: correctness, depth, head_to_head, honesty");
  command->add_option("--points", a->points, "0 to the criterion's weight");
  command->add_option("--reason", a->reason,
                      "what the student will read; @name inserts a comment of COHORT/comments.yaml");
  command->add_option("--member", a->member, "of a team: only this member (id, or name without an id)");
  command->add_option("--grader", a->grader, "who gives the mark (default: your user name)");
  auto* next = command->add_flag(
      "--next", a->next, "open a sheet for each submission that waits for marks ($VISUAL or $EDITOR)");
  command
      ->add_option("--from", a->from, "a CSV with name,criterion,points,reason; all rows or none are taken")
      ->excludes(next);
  command->callback([&context, &action, a] { action = [&context, a] { return mark(context, *a); }; });
}

}  // namespace capstone::cli
