// `replay`: the case that failed on the mentor's machine, on the student's.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "cli/show_replay.h"

namespace capstone::cli {

void add_replay(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("replay", "run the case that failed on your mentor's machine again, here");
  auto a = std::make_shared<workflows::ReplayVerdictRequest>();
  auto file = std::make_shared<std::string>();
  command->add_option("verdict", *file, "the verdict.json that came with your feedback")->required();
  command->add_option("--case", a->wanted, "the case (default: the first that failed)");
  command->add_option("--who", a->candidate, "human, llm or together (default: the one that failed)")
      ->check(CLI::IsMember({"human", "llm", "together"}));
  add_judge_options(*command, a->judge);
  add_format(*command, context);
  command->callback([&context, &action, a, file] {
    action = [&context, a, file]() -> Result<ExitCode> {
      a->file = *file;
      CAPSTONE_TRY(const auto outcome, workflows::replay_verdict(*a, context, context.progress()));
      return show_replay(context, outcome, "capstone replay " + *file);
    };
  });
}

}  // namespace capstone::cli
