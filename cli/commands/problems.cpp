#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "cli/context.h"
#include "harness/analysis/lint/lint.h"
#include "harness/base/csv.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/course/problem_choice.h"

namespace capstone::cli {
namespace {

constexpr int kRecommendedTier = 2;

Json summary(const Problem& p) {
  return {{"id", p.id},
          {"title", p.title},
          {"tier", p.tier},
          {"sessions", p.sessions},
          {"bottleneck", p.bottleneck},
          {"expect", p.expect},
          {"edge", p.edge},
          {"digest", p.digest},
          {"path", p.folder.string()}};
}

Result<ExitCode> list(const Context& context, int tier) {
  CAPSTONE_TRY(auto catalogue, load_catalogue(context.resources.problems()));
  if (context.json) {
    Json all = Json::array();
    for (const Problem& p : catalogue)
      if (!tier || p.tier == tier) all.push_back(summary(p));
    context.terminal.out(all.dump(2));
    return ExitCode::kDone;
  }
  const Terminal& t = context.terminal;
  for (const Problem& p : catalogue) {
    if (tier && p.tier != tier) continue;
    std::string mark = p.tier == kRecommendedTier ? t.paint(Tone::kGood, "  recommended") : "";
    t.out(fmt::format("{}  tier {} · {}{}", t.paint(Tone::kBold, p.id), p.tier, join(p.sessions, " "), mark));
    t.out("    " + p.title);
    if (!p.edge.empty()) t.out("    the human's edge: " + p.edge);
  }
  t.out();
  t.out(
      "Tier 2 (a chain of operators) is where fusion gives a human a real chance; tier 1 fights a tuned "
      "library.");
  t.out(t.paint(Tone::kDim, "details: capstone problems show ID     start: capstone init ID DIR"));
  return ExitCode::kDone;
}

// What `problems` is asked for besides its list.
struct Choice {
  bool recommend = false;
  std::string roster;
  Wish wish;
};

Result<ExitCode> recommend_some(const Context& context, const Choice& choice) {
  CAPSTONE_TRY(const auto catalogue, load_catalogue(context.resources.problems()));
  CAPSTONE_TRY(auto fitting, recommend(catalogue, choice.wish));
  constexpr std::size_t kShown = 3;
  const std::size_t more = fitting.size() > kShown ? fitting.size() - kShown : 0;
  fitting.resize(fitting.size() - more);
  if (context.json) {
    Json all = Json::array();
    for (const Recommendation& one : fitting) {
      all.push_back(summary(*one.problem));
      all.back()["because"] = one.because;
    }
    context.terminal.out(all.dump(2));
    return ExitCode::kDone;
  }
  const Terminal& t = context.terminal;
  for (const Recommendation& one : fitting) {
    t.out(fmt::format("{}  {}", t.paint(Tone::kBold, one.problem->id), one.problem->title));
    t.out(t.fold("    " + one.because));
    t.out(t.paint(Tone::kDim,
                  fmt::format("    capstone problems show {0}     capstone init {0} {0}", one.problem->id)));
  }
  if (more) t.out(fmt::format("{} more fit; --interest names what you like", more));
  return ExitCode::kDone;
}

// CSV on standard output, what it comes to on standard error.
Result<ExitCode> assign_all(const Context& context, const Choice& choice) {
  CAPSTONE_TRY(const auto catalogue, load_catalogue(context.resources.problems()));
  CAPSTONE_TRY(const auto roster, read_roster(context.cwd / choice.roster));
  CAPSTONE_TRY(const auto assigned, assign_problems(catalogue, roster, choice.wish));
  std::map<std::string, int> taken;
  Json all = Json::array();
  std::string csv = csv_row({"name", "id", "problem", "tier", "because"});
  for (const Assigned& one : assigned) {
    const Problem& problem = *one.choice.problem;
    ++taken[problem.id];
    csv += csv_row(
        {one.student.name, one.student.id, problem.id, std::to_string(problem.tier), one.choice.because});
    all.push_back({{"name", one.student.name},
                   {"id", one.student.id},
                   {"problem", problem.id},
                   {"tier", problem.tier},
                   {"because", one.choice.because}});
  }
  csv.erase(csv.size() - 2);  // out() ends the line
  context.terminal.out(context.json ? all.dump(2) : csv);
  int most = 0;
  for (const auto& [id, count] : taken) most = std::max(most, count);
  context.terminal.say(fmt::format("{} people, {} problems, at most {} on one problem",
                                   assigned.size(), taken.size(), most));
  return ExitCode::kDone;
}

Result<ExitCode> show(const Context& context, const std::string& name) {
  CAPSTONE_TRY(Problem p, find_problem(context.resources.problems(), name));
  if (context.json) {
    context.terminal.out(summary(p).dump(2));
    return ExitCode::kDone;
  }
  const Terminal& t = context.terminal;
  CAPSTONE_TRY(std::string statement, read_file(p.folder / "statement.md", 1u << 20));
  t.out(statement);
  t.out("```cpp\n" + launch_header(p) + "```");
  CAPSTONE_TRY(Cost cost, cost_at(p, p.measure));
  t.out(fmt::format("measured at {}: {:.3g} FLOP, {} compulsory, {:.2f} FLOP/byte", to_string(p.measure),
                    cost.flops, format_bytes(cost.bytes), cost.intensity()));
  // The expected bottleneck stays hidden until the student has predicted (the JSON list has it).
  std::error_code code;
  for (const auto& session_folder : fs::directory_iterator(context.resources.reference_kernels(), code)) {
    if (!fs::is_directory(session_folder.path() / p.id, code)) continue;
    std::vector<std::string> rungs;
    for (const auto& rung : fs::directory_iterator(session_folder.path() / p.id, code))
      if (rung.path().extension() == ".cu") rungs.push_back(rung.path().stem());
    std::sort(rungs.begin(), rungs.end());
    t.out("rungs to start from (--from): " + join(rungs, ", "));
  }
  return ExitCode::kDone;
}

// A folder, or the catalogue's folder of that id, whether or not what lies in it can be read.
Result<fs::path> folder_of(const Context& context, const std::string& name) {
  std::error_code code;
  if (name.find('/') != std::string::npos || fs::exists(context.cwd / name / "problem.yaml", code))
    return context.cwd / name;
  if (fs::path known = context.resources.problems() / name; fs::exists(known / "problem.yaml", code))
    return known;
  CAPSTONE_TRY(Problem problem, find_problem(context.resources.problems(), name));
  return problem.folder;
}

Result<ExitCode> lint(const Context& context, const std::string& name) {
  CAPSTONE_TRY(fs::path folder, folder_of(context, name));
  CAPSTONE_TRY(auto checks, lint_problem(folder, context.resources,
                                         [&](const std::string& text) { context.terminal.progress(text); }));
  context.terminal.end_progress();
  const Terminal& t = context.terminal;
  Json all = Json::array();
  for (const LintCheck& check : checks) {
    const bool failed = check.state == LintCheck::State::kFailed,
               ran = check.state != LintCheck::State::kNotRun;
    const std::string_view state = failed ? "FAIL" : ran ? "ok" : "not run";
    if (context.json) {
      all.push_back({{"check", check.name},
                     {"state", state},
                     {"what", check.what},
                     {"where", check.where},
                     {"hint", check.hint}});
      continue;
    }
    t.out(fmt::format("{}{:<14}{}",
                      t.paint(failed ? Tone::kBad
                              : ran  ? Tone::kGood
                                     : Tone::kDim,
                              fmt::format("{:<9}", state)),
                      check.name, check.what));
    if (failed && !check.where.empty()) t.out("  --> " + check.where);
    if (failed && !check.hint.empty()) t.out("  hint: " + check.hint);
  }
  if (context.json) t.out(all.dump(2));
  return passes(checks) ? ExitCode::kDone : ExitCode::kUsage;
}

}  // namespace

void add_problems(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("problems", "list the problems, show one, or check a definition");
  auto tier = std::make_shared<int>(0);
  command->add_option("--tier", *tier, "only this tier (1 single operator, 2 chain, 3 whole block)")
      ->check(CLI::Range(1, 3));
  auto choice = std::make_shared<Choice>();
  auto* recommends = command->add_flag("--recommend", choice->recommend, "three that suit you, and why");
  auto* assigns =
      command
          ->add_option("--assign", choice->roster,
                       "for mentors: spread a cohort over the problems, as CSV; the roster may have "
                       "columns level and interest")
          ->option_text("ROSTER.csv")
          ->excludes(recommends);
  std::vector<std::string> names;
  for (const StudentLevel& level : student_levels()) names.emplace_back(level.name);
  command
      ->add_option("--level", choice->wish.level,
                   "with --recommend, --assign: how far you are (default: usual)")
      ->option_text(join(names, "|"));
  command->add_option("--interest", choice->wish.interest,
                      "with --recommend, --assign: words, for example \"attention\" or \"memory fp8\"");
  add_format(*command, context);
  command->callback([&context, &action, tier, choice, assigns] {
    if (action) return;
    if (*assigns)
      action = [&context, choice] { return assign_all(context, *choice); };
    else if (choice->recommend || !choice->wish.level.empty() || !choice->wish.interest.empty())
      action = [&context, choice] { return recommend_some(context, *choice); };
    else
      action = [&context, tier] { return list(context, *tier); };
  });
  auto* one = command->add_subcommand("show", "show a problem's statement, contract and rungs");
  auto name = std::make_shared<std::string>();
  one->add_option("problem", *name, "id or folder")->required();
  add_format(*one, context);
  one->callback([&context, &action, name] { action = [&context, name] { return show(context, *name); }; });
  auto* checked = command->add_subcommand(
      "lint", "check a definition: sizes, cost, tolerance, oracle, baseline, triviality");
  auto definition = std::make_shared<std::string>();
  checked->add_option("problem", *definition, "id or folder")->required();
  add_format(*checked, context);
  checked->callback([&context, &action, definition] {
    action = [&context, definition] { return lint(context, *definition); };
  });
}

}  // namespace capstone::cli
