// `capstone lab`: exercises made from the reference kernels.
#include "harness/workflows/lab.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>

#include "cli/context.h"
#include "cli/course.h"
#include "cli/show.h"
#include "harness/base/text.h"
#include "harness/workflows/judge_and_record.h"

namespace capstone::cli {
namespace {

using workflows::LabStatus;
using workflows::LabVerdict;

struct LabArguments {
  std::string id, folder;
  int hint = 0;
  bool give_up = false;
};

std::string state_of(const LabStatus& status) { return status.progress ? status.progress->state() : ""; }

// A lab's folder as the shell takes it from the current one.
std::string shell_path(const std::filesystem::path& folder, const Context& context) {
  const std::string path = folder.lexically_relative(context.cwd).string();
  const bool plain = std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == '.' || c == '_' || c == '-';
  });
  return plain ? path : "'" + replace_all(path, "'", "'\\''") + "'";
}

Result<ExitCode> list(const Context& context) {
  CAPSTONE_TRY(const auto labs, workflows::list_labs(context));
  CAPSTONE_TRY(const Course road, load_course(context.resources.reference_kernels()));
  const Terminal& t = context.terminal;
  if (context.json) {
    Json all = Json::array();
    for (const LabStatus& one : labs)
      all.push_back({{"id", one.lab.id},
                     {"title", one.lab.title},
                     {"problem", one.lab.problem()},
                     {"state", state_of(one)},
                     {"hints", one.progress ? one.progress->hints : 0}});
    t.out(all.dump(2));
    return ExitCode::kDone;
  }
  Table table({"lab", "what you write", "problem", "state"});
  std::string session;
  int passed = 0;
  bool some_helped = false;
  for (const LabStatus& one : labs) {
    if (one.lab.session() != session) {
      session = one.lab.session();
      for (const CourseSession& of : road.sessions)
        if (session == of.id) table.line(t.paint(Tone::kBold, fmt::format("{} {}", of.id, of.title)));
    }
    const bool done = one.progress && one.progress->passed;
    passed += done;
    const bool helped = done && one.progress->helped();
    some_helped |= helped;
    table.row({one.lab.id, one.lab.title, one.lab.problem(),
               t.paint(done ? Tone::kGood : Tone::kPlain, helped ? "passed*" : state_of(one))});
  }
  t.out(table.text(t));
  t.out(fmt::format("{} of {} passed{}", passed, labs.size(),
                    some_helped ? " (* after the solution was shown)" : ""));
  const auto open = std::find_if(labs.begin(), labs.end(),
                                 [](const LabStatus& one) { return !one.progress || !one.progress->passed; });
  if (open == labs.end()) return ExitCode::kDone;
  t.out(open->progress ? fmt::format("next: cd {} && capstone lab", shell_path(open->folder, context))
                       : fmt::format("next: capstone lab {}", open->lab.id));
  return ExitCode::kDone;
}

Result<ExitCode> make(const Context& context, const LabArguments& arguments) {
  CAPSTONE_TRY(const auto made, workflows::make_lab(arguments.id, arguments.folder, context));
  const std::string shown = shell_path(made.folder, context);
  const Terminal& t = context.terminal;
  t.out(t.paint(Tone::kBold, fmt::format("{}: {}", made.lab.id, made.lab.title)));
  t.out(fmt::format("{}/kernel.cu has {} for you; {}/README.md says what to read first", shown,
                    made.todos == 1 ? "a TODO" : fmt::format("{} TODOs", made.todos), shown));
  t.out(fmt::format("next: cd {} && capstone lab", shown));
  return ExitCode::kDone;
}

// "3.0 sectors per request (at most 4)"
std::string counted(const workflows::CountedLimit& one) {
  return fmt::format("{:.4g} {} ({} {:g})", one.value, one.limit.count->name,
                     one.limit.at_least ? "at least" : "at most", one.limit.bound);
}

void print_verdict(const LabVerdict& verdict, const Context& context) {
  const Terminal& t = context.terminal;
  const std::string& id = verdict.lab.id;
  if (verdict.measurement.gate_one != GateOne::kPassed) {
    t.out(t.fold(explain_failure(verdict.measurement, t, context.verbose), 2));
    if (verdict.todos)
      t.out(verdict.todos == 1 ? "  1 TODO is left in kernel.cu"
                               : fmt::format("  {} TODOs are left in kernel.cu", verdict.todos));
    t.out("next: change kernel.cu, then: capstone lab (help: capstone lab hint)");
    return;
  }
  for (const auto& one : verdict.limits) {
    if (one.limit.met(one.value)) continue;
    t.out(t.paint(Tone::kBad, fmt::format("{}: the results are right, but {}", id, counted(one))));
    if (!one.where.empty()) t.out("  --> " + one.where + " costs most");
    t.out(t.fold(fmt::format("  hint: {}", one.limit.count->remedy), 2));
  }
  if (!verdict.passed()) {
    t.out(fmt::format("counts of each line: capstone explain kernel.cu --problem {}", verdict.lab.problem()));
    t.out("next: change kernel.cu, then: capstone lab");
    return;
  }
  std::string counts;
  for (const auto& one : verdict.limits) counts += ", " + counted(one);
  t.out(t.paint(Tone::kGood, fmt::format("{}: PASS{}", id, counts)));
  t.out(verdict.next ? fmt::format("next: cd .. && capstone lab {}", *verdict.next)
                     : "next: your capstone: capstone problems");
}

Result<ExitCode> check(const Context& context, const std::string& folder) {
  CAPSTONE_TRY(const auto place, workflows::lab_folder_here(context, folder));
  CAPSTONE_TRY(const LabVerdict verdict, workflows::check_lab(place, context, context.progress()));
  if (context.json) {
    Json limits = Json::array();
    for (const auto& one : verdict.limits)
      limits.push_back({{"count", one.limit.count->name},
                        {one.limit.at_least ? "at_least" : "at_most", one.limit.bound},
                        {"value", one.value}});
    context.terminal.out(Json{{"lab", verdict.lab.id},
                              {"passed", verdict.passed()},
                              {"todos", verdict.todos},
                              {"limits", limits},
                              {"measurement", verdict.measurement}}
                             .dump(2));
  } else {
    print_verdict(verdict, context);
  }
  if (verdict.passed()) return ExitCode::kDone;
  const ExitCode code = workflows::exit_code_of({verdict.measurement});
  return code == ExitCode::kDone ? ExitCode::kGateOneFailed : code;
}

Result<ExitCode> hint(const Context& context, const LabArguments& arguments) {
  const auto place = workflows::lab_folder_here(context);
  if (!place && workflows::project_here(context))
    return fail("this is the folder of a project, not of a lab", context.cwd.string(),
                "the hints of a project: capstone hint");
  if (!place) return fail(place.error());
  CAPSTONE_TRY(const auto shown, workflows::show_hint(*place, arguments.hint, context));
  const Terminal& t = context.terminal;
  t.out(t.fold(fmt::format("hint {}: {}", shown.number, shown.text)));
  t.out(shown.last
            ? "that was the last hint. The solution: capstone lab --give-up"
            : fmt::format("next: try it; if you are still stuck: capstone lab hint {}", shown.number + 1));
  return ExitCode::kDone;
}

Result<ExitCode> give_up(const Context& context) {
  CAPSTONE_TRY(const auto place, workflows::lab_folder_here(context));
  CAPSTONE_TRY(const auto shown, workflows::give_up_lab(place, context));
  const Terminal& t = context.terminal;
  for (const TakenOut& span : shown.spans) {
    t.out(t.paint(Tone::kBold, fmt::format("solution.cu:{}", span.line)));
    t.out(span.text);
  }
  t.out("the whole kernel: " + shown.file.string());
  t.out("next: read it, write it again from memory in kernel.cu, then: capstone lab");
  return ExitCode::kDone;
}

Result<ExitCode> lab(const Context& context, const LabArguments& arguments) {
  if (arguments.give_up) return give_up(context);
  if (!arguments.id.empty()) return make(context, arguments);
  if (workflows::lab_folder_here(context)) return check(context, {});
  return list(context);
}

}  // namespace

void add_lab(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "lab", "exercises from the course's kernels: list them, make one, or in a lab's folder check it");
  auto a = std::make_shared<LabArguments>();
  auto* id = command->add_option(
      "id", a->id, "make this lab: L4-2; without it: list all, or check the lab that you are in");
  command->add_option("dir", a->folder, "the new folder (default: the lab's id)");
  command
      ->add_flag("--give-up", a->give_up, "in a lab's folder: show the solution and record that you saw it")
      ->excludes(id);
  add_format(*command, context);
  command->require_subcommand(0, 1);

  auto* listing = command->add_subcommand("list", "list the labs by session, with your progress");
  add_format(*listing, context);
  auto* checking = command->add_subcommand("check", "judge the lab: right results, and within its limits?");
  checking->add_option("dir", a->folder, "the lab's folder (default: the current one)");
  add_format(*checking, context);
  auto* hinting = command->add_subcommand("hint", "show the next hint, or the one with this number");
  hinting->add_option("number", a->hint, "1 to 3 (default: the next one)")->check(CLI::Range(1, 3));

  command->callback([&context, &action, a, listing, checking, hinting] {
    if (listing->parsed())
      action = [&context] { return list(context); };
    else if (checking->parsed())
      action = [&context, a] { return check(context, a->folder); };
    else if (hinting->parsed())
      action = [&context, a] { return hint(context, *a); };
    else
      action = [&context, a] { return lab(context, *a); };
  });
}

}  // namespace capstone::cli
