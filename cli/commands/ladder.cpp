// `capstone ladder`: all rungs of a problem in one interleaved run, drawn as a ladder view; or as it was recorded on another machine.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "cli/choices.h"
#include "cli/live_ladder.h"
#include "cli/output_path.h"
#include "cli/results.h"
#include "cli/rungs.h"
#include "cli/context.h"
#include "cli/sizes.h"
#include "cli/ladder_view.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/analysis/ladder/ladder.h"
#include "templates/ladder_page.h"

namespace capstone::cli {
namespace {

struct LadderArguments {
  std::string problem, session, size, recorded, record;
  std::vector<std::string> only;
  Backend backend = Backend::kAuto;
  double budget = 2;
  bool live = false, rehearse = false;
  std::string html;
};

// Ladders as the user wants them, measured or recorded.
Result<void> present(const Context& context, const LadderArguments& arguments, const std::vector<Ladder>& ladders, bool recorded) {
  if (!arguments.html.empty()) {
    CAPSTONE_TRY(const std::string page, ladder_page(ladders, recorded, context.resources.templates()));
    CAPSTONE_CHECK(write_file_atomic(context.cwd / arguments.html, page));
    context.terminal.say("ladder view: " + (context.cwd / arguments.html).string());
  }
  if (context.json) {
    context.terminal.out(Json(ladders).dump(2));
    return {};
  }
  for (const Ladder& ladder : ladders) {
    if (arguments.live && !std::cin) break;  // the room has left during the last one
    if (arguments.live) CAPSTONE_CHECK(live_ladder(ladder, recorded, context.terminal, std::cin));
    else context.terminal.out(ladder_text(ladder, context.terminal, recorded) + (recorded ? "\n" : ""));
  }
  return {};
}

Result<std::vector<Rung>> chosen_rungs(const Context& context, const LadderArguments& arguments, const std::string& problem) {
  CAPSTONE_TRY(auto rungs, rungs_of(context.resources, problem));
  std::erase_if(rungs, [&](const Rung& rung) { return !arguments.session.empty() && earlier_session(arguments.session, rung.session); });
  if (arguments.only.empty()) return rungs;
  std::vector<Rung> chosen;
  for (const std::string& wanted : arguments.only) {
    CAPSTONE_TRY(const fs::path path, find_rung(context, problem, wanted, "capstone ladder {1} --only {0}"));
    const auto found = std::find_if(rungs.begin(), rungs.end(), [&](const Rung& rung) { return rung.source == path; });
    chosen.push_back(found != rungs.end() ? *found : Rung{path, path.stem(), "", path.filename(), ""});
  }
  std::sort(chosen.begin(), chosen.end(), [](const Rung& a, const Rung& b) { return a.name < b.name; });
  return chosen;
}

// What was recorded, as far as it was asked for: sizes, rungs, nothing of later sessions.
Result<std::vector<Ladder>> as_asked(const Context& context, const LadderArguments& arguments, std::vector<Ladder> ladders) {
  std::vector<Ladder> chosen;
  std::vector<std::string> sizes, rungs;
  for (Ladder& ladder : ladders) {
    if (!arguments.size.empty()) {
      CAPSTONE_TRY(const Problem problem, find_problem(context.resources.problems(), ladder.problem));
      Sizes recorded = problem.measure;
      for (auto& [symbol, value] : recorded) value = ladder.sizes.value(symbol, value);
      sizes.push_back(to_string(recorded));
      CAPSTONE_TRY(const Sizes wanted, parse_sizes(problem, recorded, arguments.size));
      if (wanted != recorded) continue;
    }
    std::erase_if(ladder.steps, [&](const LadderStep& step) { return !arguments.session.empty() && earlier_session(arguments.session, step.rung.session); });
    for (const LadderStep& step : ladder.steps) rungs.push_back(step.rung.name);
    for (const std::string& wanted : arguments.only)
      if (std::none_of(ladder.steps.begin(), ladder.steps.end(), [&](const LadderStep& step) { return is_called(step.rung.name, wanted); }))
        return fail("no rung " + wanted + " of " + ladder.problem + " was recorded", {}, "recorded: " + join(rungs, " "));
    if (!arguments.only.empty())
      std::erase_if(ladder.steps, [&](const LadderStep& step) {
        return std::none_of(arguments.only.begin(), arguments.only.end(), [&](const std::string& wanted) { return is_called(step.rung.name, wanted); });
      });
    chosen.push_back(std::move(ladder));
  }
  // A room guesses the gains of a ladder once: at the problem's own size, where that was recorded.
  if (arguments.live && arguments.size.empty()) {
    const std::vector<Ladder> all = std::exchange(chosen, {});
    for (const Ladder& ladder : all) {
      const auto rival = std::count_if(all.begin(), all.end(), [&](const Ladder& other) { return other.problem == ladder.problem; });
      const auto problem = find_problem(context.resources.problems(), ladder.problem);
      if (rival == 1 || !problem || sizes_json(problem->measure) == ladder.sizes) chosen.push_back(ladder);
    }
    if (chosen.empty()) chosen = all;
  }
  if (chosen.empty()) return fail("nothing was recorded at " + arguments.size, {}, "recorded: " + join(sizes, "; "));
  return chosen;
}

Result<ExitCode> recorded_ladders(const Context& context, const LadderArguments& arguments, const std::vector<std::string>& problems) {
  CAPSTONE_TRY(const fs::path file, results_file(context, arguments.recorded));
  CAPSTONE_TRY(const auto results, read_results(file));
  std::vector<Ladder> chosen;
  for (const Ladder& ladder : results.ladders)
    if (std::find(problems.begin(), problems.end(), ladder.problem) != problems.end()) chosen.push_back(ladder);
  if (chosen.empty()) {
    std::vector<std::string> recorded;
    for (const Ladder& ladder : results.ladders)
      if (recorded.empty() || recorded.back() != ladder.problem) recorded.push_back(ladder.problem);
    const auto meant = nearest(problems.front(), recorded);
    return fail("no such ladder was recorded: " + join(problems, ", "), file.string(), (meant ? "did you mean `" + *meant + "`?  " : "") + "recorded: " + join(recorded, ", "));
  }
  CAPSTONE_TRY(chosen, as_asked(context, arguments, std::move(chosen)));
  CAPSTONE_CHECK(present(context, arguments, chosen, true));
  return ExitCode::kDone;
}

// All builds and all checks beforehand, so that nobody waits for them in front of the room.
Result<ExitCode> rehearse(const Context& context, const std::string& id, const LadderRequest& request) {
  CAPSTONE_TRY(const Ladder built, climb(request, context.resources, [&](const std::string& text) { context.terminal.progress(id + ": " + text); }));
  context.terminal.end_progress();
  int ready = 0;
  for (const LadderStep& step : built.steps) {
    if (step.gate_one == "PASS") ++ready;
    else context.terminal.out(fmt::format("{}: {}: {}", step.rung.name, step.gate_one, step.trouble));
  }
  context.terminal.out(fmt::format("{}: {} of {} rungs are built and checked, in {:.0f} s", id, ready, built.steps.size(), built.seconds));
  return ready == static_cast<int>(built.steps.size()) ? ExitCode::kDone : ExitCode::kGateOneFailed;
}

Result<ExitCode> ladder(const Context& context, const LadderArguments& arguments) {
  std::vector<std::string> problems;
  if (!arguments.problem.empty()) problems = {arguments.problem};
  else if (problems = ladders_of(context.resources, arguments.session); problems.empty())
    return fail("no ladder in session " + arguments.session, context.resources.reference_kernels().string(),
                "sessions are called L1 to L8 and W1 to W6; ladders: " + join(ladders_of(context.resources, ""), ", "));
  if (arguments.problem.empty() && arguments.session.empty())
    return fail("which ladder?", {}, "capstone ladder PROBLEM, or --session L5; ladders: " + join(problems, ", "));
  for (const auto& [file, kind] : {std::pair(arguments.html, Output::kPage), std::pair(arguments.record, Output::kLadders)}) {
    if (file.empty()) continue;
    CAPSTONE_TRY(const fs::path path, output_path(context, file, kind));
    CAPSTONE_CHECK(expect_writable(path));
  }
  if (!arguments.recorded.empty()) return recorded_ladders(context, arguments, problems);
  if ((arguments.live && !arguments.rehearse) || !arguments.record.empty())
    if (const BackendChoice choice = choose_backend(arguments.backend, context.resources); choice.backend == Backend::kEmulated)
      return fail(fmt::format("{} needs times, and nothing can be timed here{}", arguments.live ? "a live ladder" : "--record", choice.because.empty() ? "" : ": " + choice.because), {},
                  arguments.live ? "show what another machine recorded: capstone ladder " + problems.front() + " --live --recorded DEVICE" : "run it on a machine with a GPU",
                  ExitCode::kEnvironment);
  ExitCode code = ExitCode::kDone;
  std::vector<Ladder> ladders;
  for (const std::string& id : problems) {
    CAPSTONE_TRY(const auto rungs, chosen_rungs(context, arguments, id));
    CAPSTONE_TRY(Problem problem, find_problem(context.resources.problems(), id));
    CAPSTONE_TRY(problem.measure, parse_sizes(problem, problem.measure, arguments.size));
    // What is kept is timed by two sets of processes.
    LadderRequest request{&problem, rungs, arguments.backend, arguments.budget, arguments.record.empty() ? 1 : 2, !arguments.rehearse};
    if (arguments.rehearse) {
      CAPSTONE_TRY(const ExitCode one, rehearse(context, id, request));
      if (one != ExitCode::kDone) code = one;
      continue;
    }
    CAPSTONE_TRY(const Ladder climbed, climb(request, context.resources, [&](const std::string& text) { context.terminal.progress(id + ": " + text); }));
    context.terminal.end_progress();
    if (std::any_of(climbed.steps.begin(), climbed.steps.end(), [](const LadderStep& s) { return s.gate_one != "PASS"; })) code = ExitCode::kGateOneFailed;
    if (!arguments.record.empty()) CAPSTONE_CHECK(record_ladder(context.cwd / arguments.record, climbed));
    ladders.push_back(climbed);
  }
  if (!arguments.rehearse) CAPSTONE_CHECK(present(context, arguments, ladders, false));
  return code;
}

}  // namespace

void add_ladder(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("ladder", "the reference kernels of a problem, rung by rung: how fast, and what made it so");
  auto arguments = std::make_shared<LadderArguments>();
  auto* problem = command->add_option("problem", arguments->problem, "whose ladder: sgemm, softmax, transpose …");
  command->add_option("--session", arguments->session, "all ladders of a session: L4; rungs of later sessions are left out")->excludes(problem);
  command->add_option("--only", arguments->only, "these rungs alone: 03 05, or a .cu of your own");
  command->add_option("--size", arguments->size, "the measured size: rows=8192,cols=8192 (default: the problem's)");
  auto* budget = command->add_option("--budget", arguments->budget, "seconds of timing a rung (default 2)")->check(CLI::Range(0.1, 3600.0));
  auto* recorded = command->add_option("--recorded", arguments->recorded, "as recorded on a device (h200) or in a file (results.json); nothing is run");
  auto* record = command->add_option("--record", arguments->record, "put the result into this file: reference_kernels/results/h200.json");
  auto* backend = add_backend(*command, arguments->backend, "emulated: checks every rung on the CPU, times none (default auto)");
  auto* live = command->add_flag("--live", arguments->live, "for a classroom: one rung at a time, after the room's guess");
  auto* rehearse = command->add_flag("--rehearse", arguments->rehearse, "build and check everything now, so that the live run need not")->excludes(live);
  for (auto* measuring : {budget, record, backend, rehearse}) recorded->excludes(measuring);
  command->add_option("--html", arguments->html, "write the ladder view as a page that needs nothing else");
  add_format(*command, context);
  command->callback([&context, &action, arguments] { action = [&context, arguments] { return ladder(context, *arguments); }; });
}

}  // namespace capstone::cli
