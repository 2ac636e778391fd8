// `grade` for mentors, and the hidden `grade-one` that it runs for each submission.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "cli/show_grades.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

using workflows::GradeItem;
using workflows::GradeRequest;

struct GradeArguments {
  GradeRequest request;
  std::string executor = "local";
  bool dry_run = false, collect = false;
  std::vector<std::string> clear;
  std::string reason, grader;
};

// A moving line on a terminal; in a file or pipe a line for each start and end.
workflows::GradeEvents show_events(const Context& context) {
  const Terminal& t = context.terminal;
  workflows::GradeEvents events;
  events.progress = context.progress();
  events.started = [&t](std::size_t number, std::size_t all, const GradeItem& item) {
    if (!t.interactive())
      t.say(fmt::format("[{}/{}] {}: {}", number, all, item.submission.name, item.because));
  };
  events.finished = [&t](std::size_t ended, std::size_t all, const GradeItem& item, double seconds) {
    if (all)
      t.say(fmt::format("[{}/{}] {}: {} ({:.1f} s)", ended, all, item.submission.name, grade_line(item),
                        seconds));
    else
      t.say(fmt::format("{}: {}", item.submission.name, grade_line(item)));
  };
  events.running = [&t](std::size_t ended, std::size_t all, double seconds,
                        const std::vector<workflows::GradeEvents::Running>& running) {
    if (!t.interactive()) return;
    std::vector<std::string> texts;
    for (const auto& job : running) texts.push_back(fmt::format("{} {}", job.name, name_of(job.state)));
    const double left = ended ? seconds / static_cast<double>(ended) * static_cast<double>(all - ended) : 0;
    t.progress(fmt::format("{}/{}{} | {}", ended, all,
                           ended ? fmt::format(", about {} left", duration_text(left)) : "",
                           join(texts, ", ")));
  };
  return events;
}

Result<ExitCode> grade(const Context& context, GradeArguments arguments) {
  GradeRequest& request = arguments.request;
  if (!arguments.clear.empty()) {
    CAPSTONE_CHECK(workflows::clear_submissions(context, request.out, arguments.clear, arguments.reason,
                                                arguments.grader.empty() ? context.user : arguments.grader));
    for (const std::string& name : arguments.clear) context.terminal.out(name + ": cleared, it is graded");
    return ExitCode::kDone;
  }
  if (request.folder.empty() == request.repos.empty())
    return fail("no submissions are named", {},
                "capstone grade FOLDER; or --repos ROSTER; or --clear NAME --reason TEXT");
  if (arguments.executor == "slurm") request.executor = GradeRequest::Executor::kSlurm;
  if (arguments.collect) request.executor = GradeRequest::Executor::kCollect;
  if (arguments.dry_run) {
    CAPSTONE_TRY(const auto plan, workflows::plan_grading(request, context));
    print_grading_plan(plan, context.terminal);
    return ExitCode::kDone;
  }
  CAPSTONE_TRY(const auto outcome, workflows::grade_cohort(request, context, show_events(context)));
  print_grades(outcome, context.terminal);
  return outcome.complete() ? ExitCode::kDone : ExitCode::kPartlyUngraded;
}

// One submission, in a process that `grade` starts.
Result<ExitCode> grade_one(const Context& context, const std::string& path) {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const Json json = parse_json(text);
  if (!json.is_object())
    return fail("no task on standard input", {}, "`capstone grade` runs this command; run that instead");
  auto task = json.get<workflows::GradingTask>();
  task.submission.path = path;
  CAPSTONE_CHECK(workflows::grade_submission(task, context, [&](const workflows::GradingStatus& status) {
    context.terminal.progress(workflows::status_line(status));
  }));
  return ExitCode::kDone;
}

void add_slurm_options(CLI::App& command, GradeArguments& a) {
  command
      .add_option("--executor", a.executor,
                  "local (default), or slurm: a job array with a task for each submission; then --collect")
      ->check(CLI::IsMember({"local", "slurm"}));
  command.add_option("--partition", a.request.slurm.partition, "the Slurm partition (default: Slurm's own)");
  command.add_option("--gres", a.request.slurm.gres,
                     "what each Slurm task needs (default gpu:1; none: nothing)");
  command
      .add_option("--at-a-time", a.request.slurm.parallel, "Slurm tasks at a time (default: Slurm decides)")
      ->check(CLI::Range(1, 100'000));
  command.add_flag("--collect", a.collect, "take in the results of finished Slurm tasks");
}

}  // namespace

void add_grade(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("grade", "for mentors: judge every submission in a folder");
  auto a = std::make_shared<GradeArguments>();
  GradeRequest& r = a->request;
  command->add_option(
      "folder", r.folder,
      "folders and archives made by `capstone submit`; or a bulk archive of Canvas, Moodle or Gradescope");
  command
      ->add_option(
          "--repos", r.repos,
          "instead of a folder: CSV with name,id,email,repository (and deadline); clones each and takes "
          "the last commit before the deadline")
      ->type_name("ROSTER");
  command->add_option("--out", r.out, "where results, score sheets and grades.csv go (default graded/)");
  command->add_option(
      "--roster", r.roster,
      "CSV with name,id,email: the members of the course (default: roster.csv next to the submissions)");
  command
      ->add_option("--deadline", r.deadline,
                   "when it was due, for example 2026-11-20T23:59+01:00; the roster's columns deadline and "
                   "submitted take precedence; no marks are deducted")
      ->type_name("TIME");
  command->add_option("--rubric", r.rubric, "another rubric (default: the course's)");
  command->add_option("--only", r.only, "grade this submission only; may be repeated");
  command
      ->add_option("-j,--jobs", r.parallel,
                   "submissions at a time (default 1); each timing waits for a free GPU")
      ->check(CLI::Range(1, 256));
  command->add_flag("--force", r.force, "grade unchanged submissions again");
  command->add_flag("--dry-run", a->dry_run, "list what would be graded and why, write nothing");
  command->add_flag("--allow-unisolated", r.allow_unisolated,
                    "run submissions even where they can read this account's files");
  auto* clear = command->add_option("--clear", a->clear,
                                    "record that a person has looked at a needs_mentor: it counts as graded");
  command->add_option("--reason", a->reason, "with --clear: what was found out; kept in the history")
      ->needs(clear);
  command->add_option("--grader", a->grader, "with --clear: who looked (default: your user name)")
      ->needs(clear);
  add_slurm_options(*command, *a);
  add_judge_options(*command, r.judge);
  command->callback([&context, &action, a] { action = [&context, a] { return grade(context, *a); }; });

  auto* one = app.add_subcommand("grade-one")->group("");
  auto path = std::make_shared<std::string>();
  one->add_option("path", *path)->required();
  one->callback(
      [&context, &action, path] { action = [&context, path] { return grade_one(context, *path); }; });
}

}  // namespace capstone::cli
