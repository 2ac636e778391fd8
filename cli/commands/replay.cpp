// `replay`: what the mentor's machine found, again on the student's.
#include <fmt/format.h>

#include <algorithm>

#include "cli/mentor_commands.h"
#include "cli/recording.h"
#include "cli/replaying.h"
#include "cli/context.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"

namespace capstone::cli {
namespace {

struct ReplayArguments {
  std::string file, which, who;
  JudgeOptions judge;
};

// A verdict file holds the judgements of one submission.
Result<std::vector<Measurement>> read_verdict(const fs::path& file) {
  CAPSTONE_TRY(std::string text, read_file(file, 64u << 20));
  const Json json = parse_recorded(text);
  const Json judged = json.is_object() ? json.value("judged", Json::array()) : Json::array();
  if (!judged.is_array() || judged.empty()) return fail("not a verdict", file.string(), "take the verdict.json that came with your feedback");
  try {
    return judged.get<std::vector<Measurement>>();
  } catch (const std::exception& problem) {
    return fail(std::string("not a verdict: ") + problem.what(), file.string(), "take the verdict.json that came with your feedback");
  }
}

Result<ExitCode> replay(const Context& context, const ReplayArguments& arguments) {
  CAPSTONE_TRY(auto judged, read_verdict(context.cwd / arguments.file));
  CAPSTONE_TRY(Project project, project_here(context));
  CAPSTONE_CHECK(require_pinned_problem(project));
  // Whichever failed; the student's own first.
  auto chosen = std::find_if(judged.begin(), judged.end(), [&](const Measurement& m) { return arguments.who.empty() ? m.gate_one != GateOne::kPassed : m.candidate == arguments.who; });
  if (chosen == judged.end() && arguments.who.empty()) chosen = judged.begin();
  if (chosen == judged.end()) return fail("the verdict says nothing of " + arguments.who, arguments.file, "it has: " + judged.front().candidate);
  if (chosen->problem_id != project.problem.id)
    return fail("the verdict is about " + chosen->problem_id + ", this project about " + project.problem.id, project.root.string(), "run it in the project that you handed in");
  if (chosen->problem_digest != project.config.problem_digest)
    context.terminal.say("note: the mentor judged by another version of the problem than this project has pinned");
  fs::path source = project.human_kernel();
  if (chosen->candidate == "llm") {
    CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
    auto attempt = latest_attempt(project, ledger);
    if (!attempt) return fail("there is no model attempt with code here", (project.root / "llm").string(), "run it in the project that you handed in");
    source = attempt->source;
  }
  return replay_case(context, project, *chosen, source, arguments.which, arguments.judge, "capstone replay " + arguments.file);
}

}  // namespace

void add_replay(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("replay", "run the case that failed on your mentor's machine again, here");
  auto a = std::make_shared<ReplayArguments>();
  command->add_option("verdict", a->file, "the verdict.json that came with your feedback")->required();
  command->add_option("--case", a->which, "another case than the first that failed");
  command->add_option("--who", a->who, "human or llm (default: whichever failed)")->check(CLI::IsMember({"human", "llm"}));
  add_judge_options(*command, a->judge);
  add_format(*command, context);
  command->callback([&context, &action, a] { action = [&context, a] { return replay(context, *a); }; });
}

}  // namespace capstone::cli
