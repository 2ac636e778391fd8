#include "harness/workflows/ladder_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/results.h"
#include "harness/workflows/rungs.h"
#include "harness/workflows/sizes.h"
#include "templates/ladder_page.h"

namespace capstone::workflows {
namespace {

bool is_later(const LadderRun& run, const Rung& rung) {
  return !run.session.empty() && earlier_session(run.session, rung.session);
}

Result<std::vector<Rung>> chosen_rungs(const LadderRun& run, const std::string& problem,
                                       const Workspace& workspace) {
  CAPSTONE_TRY(auto rungs, rungs_of(workspace.resources, problem));
  std::erase_if(rungs, [&](const Rung& rung) { return is_later(run, rung); });
  if (run.only.empty()) return rungs;
  std::vector<Rung> chosen;
  for (const std::string& wanted : run.only) {
    auto found = std::find_if(rungs.begin(), rungs.end(),
                              [&](const Rung& rung) { return is_called(rung.name, wanted); });
    if (found != rungs.end()) {
      chosen.push_back(*found);
      continue;
    }
    CAPSTONE_TRY(const fs::path path,
                 find_rung(workspace, problem, wanted, "capstone ladder {1} --only {0}"));
    found = std::find_if(rungs.begin(), rungs.end(), [&](const Rung& rung) { return rung.source == path; });
    chosen.push_back(found != rungs.end() ? *found : Rung{path, path.stem(), "", path.filename(), ""});
  }
  std::sort(chosen.begin(), chosen.end(), [](const Rung& a, const Rung& b) { return a.name < b.name; });
  return chosen;
}

Result<void> expect_times(const LadderRun& run, const Workspace& workspace, const std::string& problem) {
  if (!run.needs_times && run.record.empty()) return {};
  const BackendChoice choice = choose_backend(run.backend, workspace.resources);
  if (choice.backend != Backend::kEmulated) return {};
  const bool live = run.needs_times;
  return fail(
      fmt::format("{} needs times, and this machine cannot time kernels{}",
                  live ? "a live ladder" : "--record", choice.because.empty() ? "" : ": " + choice.because),
      {},
      live ? "show what another machine recorded: capstone ladder " + problem + " --live --recorded DEVICE"
           : "run it on a machine with a GPU",
      ExitCode::kEnvironment);
}

Result<Problem> problem_of_ladder(const std::string& ladder, const Workspace& workspace) {
  CAPSTONE_TRY(const LadderDefinition definition, ladder_definition(workspace.resources, ladder));
  auto problem = find_problem(workspace.resources.problems(), definition.problem);
  if (problem) return problem;
  if (const auto meant = nearest(ladder, language_ladders(workspace.resources, "")))
    return fail("no ladder for " + ladder, {}, "did you mean `" + *meant + "`?");
  return problem;
}

// The sizes at which a problem's ladder is climbed.
Result<std::vector<Sizes>> sizes_of(const LadderRun& run, const std::string& id, const Workspace& workspace) {
  CAPSTONE_TRY(const Problem problem, problem_of_ladder(id, workspace));
  std::vector<Sizes> all;
  if (!run.published) {
    CAPSTONE_TRY(all.emplace_back(), parse_sizes(problem, problem.measure, run.size));
    return all;
  }
  for (const auto& [name, sizes] : problem.published) all.push_back(sizes);
  if (all.empty())
    return fail("the problem " + id + " has no published sizes", (problem.folder / "problem.yaml").string(),
                "list them under `sizes: published:`, or give one with --size");
  return all;
}

Result<Ladder> climb_one(const LadderRun& run, const std::string& id, const Sizes& sizes, bool timing,
                         const Workspace& workspace, const ProgressSink& progress) {
  CAPSTONE_TRY(const auto rungs, chosen_rungs(run, id, workspace));
  CAPSTONE_TRY(Problem problem, problem_of_ladder(id, workspace));
  CAPSTONE_TRY(const LadderDefinition definition, ladder_definition(workspace.resources, id));
  problem.measure = sizes;
  const int restarts = run.record.empty() ? 1 : 2;
  LadderRequest request{&problem, rungs, run.backend, run.budget, restarts, timing, run.sustained};
  request.ladder = id;
  request.library = definition.library;
  request.python = run.python;
  request.python_path = run.python_path;
  return climb(request, workspace.resources, narration_to(progress, id + ": "));
}

// Whether a recorded ladder has the wanted size. Adds its size to `recorded`.
Result<bool> has_size(const LadderRun& run, const Ladder& ladder, std::vector<std::string>& recorded,
                      const Workspace& workspace) {
  if (run.published) {
    CAPSTONE_TRY(const auto all, sizes_of(run, ladder.problem, workspace));
    return std::any_of(all.begin(), all.end(),
                       [&](const Sizes& sizes) { return sizes_json(sizes) == ladder.sizes; });
  }
  if (run.size.empty()) return true;
  CAPSTONE_TRY(const Problem problem, problem_of_ladder(ladder.problem, workspace));
  Sizes sizes = problem.measure;
  for (auto& [symbol, value] : sizes) value = ladder.sizes.value(symbol, value);
  recorded.push_back(to_string(sizes));
  CAPSTONE_TRY(const Sizes wanted, parse_sizes(problem, sizes, run.size));
  return wanted == sizes;
}

// Leaves only the wanted rungs. Adds the names of all to `names`.
Result<void> keep_wanted(const LadderRun& run, Ladder& ladder, std::vector<std::string>& names) {
  std::erase_if(ladder.steps, [&](const LadderStep& step) { return is_later(run, step.rung); });
  for (const LadderStep& step : ladder.steps) names.push_back(step.rung.name);
  for (const std::string& wanted : run.only) {
    const bool found = std::any_of(ladder.steps.begin(), ladder.steps.end(),
                                   [&](const LadderStep& step) { return is_called(step.rung.name, wanted); });
    if (!found)
      return fail("no rung " + wanted + " of " + ladder.problem + " was recorded", {},
                  "recorded: " + join(names, " "));
  }
  if (run.only.empty()) return {};
  std::erase_if(ladder.steps, [&](const LadderStep& step) {
    return std::none_of(run.only.begin(), run.only.end(),
                        [&](const std::string& wanted) { return is_called(step.rung.name, wanted); });
  });
  return {};
}

// Of a problem with several recorded sizes only its own, where that is among them.
std::vector<Ladder> one_size_each(std::vector<Ladder> all, const Workspace& workspace) {
  std::vector<Ladder> chosen;
  for (const Ladder& ladder : all) {
    const auto same = std::count_if(all.begin(), all.end(),
                                    [&](const Ladder& other) { return other.problem == ladder.problem; });
    const auto problem = problem_of_ladder(ladder.problem, workspace);
    if (same == 1 || !problem || sizes_json(problem->measure) == ladder.sizes) chosen.push_back(ladder);
  }
  return chosen.empty() ? all : chosen;
}

Result<std::vector<Ladder>> as_requested(const LadderRun& run, std::vector<Ladder> ladders,
                                         const Workspace& workspace) {
  std::vector<Ladder> chosen;
  std::vector<std::string> sizes, rungs;
  for (Ladder& ladder : ladders) {
    CAPSTONE_TRY(const bool wanted, has_size(run, ladder, sizes, workspace));
    if (!wanted) continue;
    CAPSTONE_CHECK(keep_wanted(run, ladder, rungs));
    chosen.push_back(std::move(ladder));
  }
  if (run.one_size && run.size.empty()) chosen = one_size_each(std::move(chosen), workspace);
  if (chosen.empty())
    return run.published ? fail("nothing was recorded at a published size", {},
                                "record it: capstone ladder PROBLEM --published --record FILE")
                         : fail("nothing was recorded at " + run.size, {}, "recorded: " + join(sizes, "; "));
  return chosen;
}

}  // namespace

Result<std::vector<std::string>> ladder_problems(const LadderRun& run, const Workspace& workspace) {
  if (!run.problem.empty()) return std::vector<std::string>{run.problem};
  auto problems = ladders_of(workspace.resources, run.session);
  for (std::string& ladder : language_ladders(workspace.resources, run.session))
    problems.push_back(std::move(ladder));
  if (problems.empty())
    return fail("no ladder in session " + run.session, workspace.resources.reference_kernels().string(),
                "sessions are called L1 to L8 and W1 to W6; ladders: " +
                    join(ladders_of(workspace.resources, ""), ", "));
  if (run.session.empty())
    return fail("which ladder?", {},
                "capstone ladder PROBLEM, or --session L5; ladders: " + join(problems, ", "));
  return problems;
}

bool any_failed(const Ladder& ladder) {
  return std::any_of(ladder.steps.begin(), ladder.steps.end(), [](const LadderStep& step) {
    return step.gate_one != label_of(GateOne::kPassed) && step.gate_one != label_of(GateOne::kNotJudgeable);
  });
}

bool all_passed(const Ladder& ladder) {
  return std::all_of(ladder.steps.begin(), ladder.steps.end(),
                     [](const LadderStep& step) { return step.gate_one == "PASS"; });
}

Result<std::vector<Ladder>> run_ladders(const LadderRun& run, const Workspace& workspace,
                                        const ProgressSink& progress) {
  CAPSTONE_TRY(const auto problems, ladder_problems(run, workspace));
  fs::path record;
  if (!run.record.empty()) {
    CAPSTONE_TRY(record, output_path(workspace, run.record, Output::kLadders));
    CAPSTONE_CHECK(expect_writable(record));
  }
  CAPSTONE_CHECK(expect_times(run, workspace, problems.front()));
  std::vector<Ladder> ladders;
  for (const std::string& id : problems) {
    CAPSTONE_TRY(const auto all, sizes_of(run, id, workspace));
    for (const Sizes& sizes : all) {
      CAPSTONE_TRY(Ladder climbed, climb_one(run, id, sizes, true, workspace, progress));
      if (!record.empty()) CAPSTONE_CHECK(record_ladder(record, climbed));
      ladders.push_back(std::move(climbed));
    }
  }
  return ladders;
}

Result<std::vector<Ladder>> rehearse_ladders(const LadderRun& run, const Workspace& workspace,
                                             const ProgressSink& progress) {
  CAPSTONE_TRY(const auto problems, ladder_problems(run, workspace));
  std::vector<Ladder> ladders;
  for (const std::string& id : problems) {
    CAPSTONE_TRY(const auto all, sizes_of(run, id, workspace));  // builds do not depend on the size
    CAPSTONE_TRY(Ladder built, climb_one(run, id, all.front(), false, workspace, progress));
    ladders.push_back(std::move(built));
  }
  return ladders;
}

Result<std::vector<Ladder>> recorded_ladders(const std::string& recorded, const LadderRun& run,
                                             const Workspace& workspace) {
  CAPSTONE_TRY(const auto problems, ladder_problems(run, workspace));
  CAPSTONE_TRY(const LadderDefinition definition, ladder_definition(workspace.resources, problems.front()));
  CAPSTONE_TRY(const fs::path file,
               results_file(workspace, recorded, definition.library.empty() ? "" : "languages"));
  CAPSTONE_TRY(const auto results, read_results(file));
  std::vector<Ladder> chosen;
  for (const Ladder& ladder : results.ladders)
    if (std::find(problems.begin(), problems.end(), ladder.problem) != problems.end())
      chosen.push_back(ladder);
  if (!chosen.empty()) return as_requested(run, std::move(chosen), workspace);
  std::vector<std::string> names;
  for (const Ladder& ladder : results.ladders)
    if (names.empty() || names.back() != ladder.problem) names.push_back(ladder.problem);
  const auto meant = nearest(problems.front(), names);
  return fail("no such ladder was recorded: " + join(problems, ", "), file.string(),
              (meant ? "did you mean `" + *meant + "`?  " : "") + "recorded: " + join(names, ", "));
}

Result<fs::path> write_ladder_page(const std::vector<Ladder>& ladders, bool recorded, const std::string& file,
                                   const Workspace& workspace) {
  CAPSTONE_TRY(const fs::path path, output_path(workspace, file, Output::kPage));
  CAPSTONE_TRY(const std::string page, ladder_page(ladders, recorded, workspace.resources.templates()));
  CAPSTONE_CHECK(write_file_atomic(path, page));
  return path;
}

}  // namespace capstone::workflows
