// `capstone ladder`: all rungs of a problem, measured here or as recorded on another machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/choices.h"
#include "cli/context.h"
#include "cli/ladder_view.h"
#include "cli/live_ladder.h"
#include "harness/workflows/ladder_run.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/results.h"

namespace capstone::cli {
namespace {

struct LadderArguments {
  workflows::LadderRun run;
  std::string recorded, html;
  bool live = false, rehearse = false;
};

Result<void> present(const Context& context, const LadderArguments& arguments,
                     const std::vector<Ladder>& ladders, bool recorded) {
  if (!arguments.html.empty()) {
    CAPSTONE_TRY(const auto page, workflows::write_ladder_page(ladders, recorded, arguments.html, context));
    context.terminal.say("ladder view: " + page.string());
  }
  if (context.json) {
    context.terminal.out(Json(ladders).dump(2));
    return {};
  }
  for (const Ladder& ladder : ladders) {
    if (arguments.live && !std::cin) break;  // the input ended during the ladder before
    if (arguments.live)
      CAPSTONE_CHECK(live_ladder(ladder, recorded, context.terminal, std::cin));
    else
      context.terminal.out(ladder_text(ladder, context.terminal, recorded) + (recorded ? "\n" : ""));
  }
  if (arguments.run.published && !arguments.live)
    if (const std::string means = over_sizes_text(ladders, context.terminal); !means.empty())
      context.terminal.out(means);
  return {};
}

void print_rehearsal(const Ladder& built, const Terminal& t) {
  int ready = 0;
  for (const LadderStep& step : built.steps) {
    if (step.gate_one == "PASS")
      ++ready;
    else
      t.out(fmt::format("{}: {}: {}", step.rung.name, step.gate_one, step.trouble));
  }
  t.out(fmt::format("{}: {} of {} rungs are built and checked, in {:.0f} s", built.problem, ready,
                    built.steps.size(), built.seconds));
}

ExitCode exit_code_of(const std::vector<Ladder>& ladders) {
  if (std::all_of(ladders.begin(), ladders.end(), workflows::all_passed)) return ExitCode::kDone;
  return std::any_of(ladders.begin(), ladders.end(), workflows::any_failed) ? ExitCode::kGateOneFailed
                                                                            : ExitCode::kEnvironment;
}

Result<ExitCode> ladder(const Context& context, LadderArguments arguments) {
  workflows::LadderRun& run = arguments.run;
  run.one_size = arguments.live;  // a class guesses the gains of a ladder once
  run.needs_times = arguments.live && !arguments.rehearse;
  CAPSTONE_CHECK(workflows::ladder_problems(run, context));
  if (!arguments.html.empty()) {
    CAPSTONE_TRY(const auto page, workflows::output_path(context, arguments.html, workflows::Output::kPage));
    CAPSTONE_CHECK(workflows::expect_writable(page));
  }
  if (!arguments.recorded.empty()) {
    CAPSTONE_TRY(const auto ladders, workflows::recorded_ladders(arguments.recorded, run, context));
    CAPSTONE_CHECK(present(context, arguments, ladders, true));
    return ExitCode::kDone;
  }
  if (arguments.rehearse) {
    CAPSTONE_TRY(const auto ladders, workflows::rehearse_ladders(run, context, context.progress()));
    for (const Ladder& built : ladders) print_rehearsal(built, context.terminal);
    return exit_code_of(ladders);
  }
  CAPSTONE_TRY(const auto ladders, workflows::run_ladders(run, context, context.progress()));
  CAPSTONE_CHECK(present(context, arguments, ladders, false));
  return exit_code_of(ladders);
}

}  // namespace

void add_ladder(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "ladder", "show the reference kernels of a problem, rung by rung: how fast, and what made it so");
  auto a = std::make_shared<LadderArguments>();
  workflows::LadderRun& r = a->run;
  auto* problem = command->add_option("problem", r.problem, "whose ladder: sgemm, softmax, gemm_languages …");
  command
      ->add_option("--session", r.session,
                   "all ladders of a course session: L4; rungs of later sessions are left out")
      ->excludes(problem);
  command->add_option("--only", r.only, "only these rungs: 03 05, or a .cu file of yours");
  auto* size = command->add_option("--size", r.size,
                                   "the measured size: rows=8192,cols=8192 (default: the problem's)");
  command
      ->add_flag("--published", r.published,
                 "at every size under `published` of the problem, and the geometric mean over them")
      ->excludes(size);
  auto* budget = command->add_option("--budget", r.budget, "seconds of timing for each rung (default 2)")
                     ->check(CLI::Range(0.1, 3600.0));
  auto* recorded = command->add_option(
      "--recorded", a->recorded, "as recorded on a device (h200) or in a file (results.json); runs nothing");
  auto* record = command->add_option("--record", r.record,
                                     "keep the result in this file: reference_kernels/results/h200.json");
  auto* backend =
      add_backend(*command, r.backend, "emulated: check every rung on the CPU, without times (default auto)");
  auto* python = command
                     ->add_option("--python", r.python,
                                  "of a ladder of languages: the python3 with PyTorch that runs its Python "
                                  "rungs (default: the first on PATH)")
                     ->type_name("PATH");
  auto* python_path =
      command
          ->add_option("--python-path", r.python_path,
                       "folders with further packages for it, separated by colons: unpacked wheels")
          ->type_name("DIR");
  auto* sustained =
      command->add_flag("--sustained", r.sustained, "also time launches back to back on a warm chip");
  auto* live = command->add_flag("--live", a->live,
                                 "for a classroom: one rung at a time, each after a guess of the class");
  auto* rehearse = command
                       ->add_flag("--rehearse", a->rehearse,
                                  "build and check everything now, so that the live run starts at once")
                       ->excludes(live);
  for (auto* measuring : {budget, record, backend, python, python_path, sustained, rehearse})
    recorded->excludes(measuring);
  command->add_option("--html", a->html, "write the ladder view as a self-contained page");
  add_format(*command, context);
  command->callback([&context, &action, a] { action = [&context, a] { return ladder(context, *a); }; });
}

}  // namespace capstone::cli
