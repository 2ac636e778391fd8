#include <fmt/format.h>

#include "cli/session.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

constexpr int kRecommendedTier = 2;

Json summary(const Problem& p) {
  return {{"id", p.id}, {"title", p.title}, {"tier", p.tier}, {"sessions", p.sessions}, {"bottleneck", p.bottleneck},
          {"expect", p.expect}, {"edge", p.edge}, {"digest", p.digest}, {"path", p.folder.string()}};
}

Result<ExitCode> list(const Session& session, int tier) {
  CAPSTONE_TRY(auto catalogue, load_catalogue(session.resources.problems()));
  if (session.json) {
    Json all = Json::array();
    for (const Problem& p : catalogue)
      if (!tier || p.tier == tier) all.push_back(summary(p));
    session.terminal.out(all.dump(2));
    return ExitCode::kDone;
  }
  const Terminal& t = session.terminal;
  for (const Problem& p : catalogue) {
    if (tier && p.tier != tier) continue;
    std::string mark = p.tier == kRecommendedTier ? t.paint(Tone::kGood, "  recommended") : "";
    t.out(fmt::format("{}  tier {} · {}{}", t.paint(Tone::kBold, p.id), p.tier, join(p.sessions, " "), mark));
    t.out("    " + p.title);
    if (!p.edge.empty()) t.out("    the human's edge: " + p.edge);
  }
  t.out();
  t.out("Tier 2 (a chain of operators) is where fusion gives a human a real chance; tier 1 fights a tuned library.");
  t.out(t.paint(Tone::kDim, "the whole story: capstone problems show ID     begin: capstone init ID DIR"));
  return ExitCode::kDone;
}

Result<ExitCode> show(const Session& session, const std::string& name) {
  CAPSTONE_TRY(Problem p, find_problem(session.resources.problems(), name));
  if (session.json) {
    session.terminal.out(summary(p).dump(2));
    return ExitCode::kDone;
  }
  const Terminal& t = session.terminal;
  CAPSTONE_TRY(std::string statement, read_file(p.folder / "statement.md", 1u << 20));
  t.out(statement);
  t.out("```cpp\n" + launch_header(p) + "```");
  CAPSTONE_TRY(Cost cost, cost_at(p, p.measure));
  t.out(fmt::format("measured at {}: {:.3g} FLOP, {} compulsory, {:.2f} FLOP/byte", to_string(p.measure), cost.flops,
                    format_bytes(cost.bytes), cost.intensity()));
  // The expected fight is kept until the student has predicted, unless asked for by the list's JSON.
  std::error_code code;
  for (const auto& session_folder : fs::directory_iterator(session.resources.reference_kernels(), code)) {
    if (!fs::is_directory(session_folder.path() / p.id, code)) continue;
    std::vector<std::string> rungs;
    for (const auto& rung : fs::directory_iterator(session_folder.path() / p.id, code))
      if (rung.path().extension() == ".cu") rungs.push_back(rung.path().stem());
    std::sort(rungs.begin(), rungs.end());
    t.out("rungs to start from (--from): " + join(rungs, ", "));
  }
  return ExitCode::kDone;
}

}  // namespace

void add_problems(CLI::App& app, Session& session, Action& action) {
  auto* command = app.add_subcommand("problems", "list the problems, or show one");
  auto tier = std::make_shared<int>(0);
  command->add_option("--tier", *tier, "only this tier (1 single operator, 2 chain, 3 whole block)")->check(CLI::Range(1, 3));
  add_format(*command, session);
  command->callback([&session, &action, tier] {
    if (!action) action = [&session, tier] { return list(session, *tier); };
  });
  auto* one = command->add_subcommand("show", "a problem's statement, contract and rungs");
  auto name = std::make_shared<std::string>();
  one->add_option("problem", *name, "id or folder")->required();
  add_format(*one, session);
  one->callback([&session, &action, name] { action = [&session, name] { return show(session, *name); }; });
}

}  // namespace capstone::cli
