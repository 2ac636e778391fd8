// `grader`: who marks a cohort, with which rights, and which submissions are whose.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "harness/workflows/divide_marking.h"

namespace capstone::cli {
namespace {

struct GraderArguments {
  std::string name, cohort = "graded";
  bool owner = false, only_assigned = false;
  workflows::DivideRequest division;
};

Result<ExitCode> add(const Context& context, const GraderArguments& arguments) {
  CAPSTONE_TRY(auto cohort, workflows::open_cohort(context, arguments.cohort));
  Marking marking(cohort.book);
  CAPSTONE_TRY(const std::string token,
               marking.add_grader(arguments.name, arguments.owner ? GraderRole::kOwner : GraderRole::kGrader,
                                  arguments.only_assigned));
  const Terminal& t = context.terminal;
  t.out(token);
  t.say(fmt::format("the token of {} for `capstone serve`, shown only now; adding {} again replaces it",
                    arguments.name, arguments.name));
  return ExitCode::kDone;
}

Result<ExitCode> remove(const Context& context, const GraderArguments& arguments) {
  CAPSTONE_TRY(auto cohort, workflows::open_cohort(context, arguments.cohort));
  CAPSTONE_CHECK(Marking(cohort.book).remove_grader(arguments.name));
  context.terminal.out(fmt::format("{} can no longer log in or mark; the marks stay", arguments.name));
  return ExitCode::kDone;
}

Result<ExitCode> list(const Context& context, const GraderArguments& arguments) {
  CAPSTONE_TRY(auto cohort, workflows::open_cohort(context, arguments.cohort));
  CAPSTONE_TRY(const auto graders, Marking(cohort.book).graders());
  CAPSTONE_TRY(const auto progress, workflows::marking_progress(cohort));
  std::map<std::string, std::string> roles;
  for (const Grader& grader : graders)
    roles[grader.name] = grader.role == GraderRole::kOwner ? "owner"
                         : grader.only_assigned            ? "only assigned"
                                                           : "grader";
  Table table({"grader", "role", "assigned", "of these open", "marked", "has open"},
              {false, false, true, true, true, false});
  for (const workflows::GraderProgress& each : progress)
    table.row({each.grader, roles.contains(each.grader) ? roles[each.grader] : "not added",
               std::to_string(each.assigned), std::to_string(each.assigned_open), std::to_string(each.marked),
               each.open_sheet.empty() ? "-" : each.open_sheet});
  context.terminal.out(table.text(context.terminal));
  return ExitCode::kDone;
}

Result<ExitCode> divide(const Context& context, const GraderArguments& arguments) {
  CAPSTONE_TRY(auto cohort, workflows::open_cohort(context, arguments.cohort));
  CAPSTONE_TRY(const auto assigned, workflows::divide_marking(context, cohort, arguments.division));
  std::map<std::string, int> counts;
  for (const Assignment& each : assigned) ++counts[each.grader];
  for (const auto& [grader, count] : counts)
    context.terminal.out(fmt::format("{}: {} assigned", grader, count));
  if (counts.empty()) context.terminal.out("every submission is assigned already; --again divides all anew");
  return ExitCode::kDone;
}

}  // namespace

void add_grader(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("grader", "for mentors: who marks a cohort, and which submissions are whose");
  auto a = std::make_shared<GraderArguments>();
  a->division.by = context.user;
  command->require_subcommand(1);
  auto subcommand = [&](const char* name, const char* text,
                        Result<ExitCode> (*run)(const Context&, const GraderArguments&)) {
    auto* made = command->add_subcommand(name, text);
    add_cohort_option(*made, a->cohort);
    made->callback([&context, &action, a, run] { action = [&context, a, run] { return run(context, *a); }; });
    return made;
  };
  auto* adding = subcommand("add", "add a grader and print the token with which they log in to `serve`", add);
  adding->add_option("name", a->name, "the name that stands next to their marks")->required();
  auto* owner = adding->add_flag("--owner", a->owner, "may do everything: publish, see names, see all marks");
  adding->add_flag("--only-assigned", a->only_assigned, "sees only the submissions that are assigned to them")
      ->excludes(owner);
  subcommand("remove", "end a grader's token; their marks stay", remove)
      ->add_option("name", a->name, "as `grader list` shows it")
      ->required();
  subcommand("list", "list the graders, and how far each is", list);
  auto* dividing = subcommand("divide", "assign the submissions to graders, in random order", divide);
  auto* shares = dividing->add_option("--share", a->division.shares,
                                      "a grader, or NAME=2 for a double share; once for each grader");
  auto* sections = dividing->add_option("--section", a->division.sections,
                                        "SECTION=GRADER; several graders of a section share it");
  sections->excludes(shares);
  auto* roster = dividing->add_option("--roster", a->division.roster,
                                      "CSV with the column section and id, email or name");
  roster->needs(sections);
  sections->needs(roster);
  dividing->add_option("--seed", a->division.seed,
                       "divide as an earlier call with this seed did (default: random)");
  dividing->add_flag("--again", a->division.again, "also submissions that are assigned already");
}

}  // namespace capstone::cli
