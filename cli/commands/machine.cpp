// `capstone machine`: searches by a language model, every kernel of which is judged.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "cli/machine_provider.h"
#include "cli/show.h"
#include "cli/show_machine.h"
#include "harness/base/text.h"
#include "harness/workflows/machine_search.h"
#include "harness/workflows/model_attempt.h"

namespace capstone::cli {
namespace {

struct MachineArguments {
  ProviderArguments provider;
  workflows::MachineRequest request;
  machine::SampleSettings sample;
  machine::RefineSettings refine;
  machine::EvolveSettings evolve;
  std::string run, node, part = "all", html, jsonl = "traces.jsonl";
};

void add_search_options(CLI::App& command, MachineArguments& a, Context& context) {
  add_provider_options(command, a.provider);
  command
      .add_option("--tries", a.request.budget.tries, "stop after so many questions, all sittings together")
      ->check(CLI::PositiveNumber);
  command.add_option("--tokens", a.request.budget.tokens, "stop at so many tokens")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--money", a.request.budget.money, "stop at this much money, by the prices of the endpoint")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--minutes", a.request.budget.minutes, "stop after so many minutes, all sittings together")
      ->check(CLI::PositiveNumber);
  command.add_option("--parallel", a.request.askers, "questions at a time (default 4)")
      ->check(CLI::Range(1, 256));
  command.add_option("--judges", a.request.judges, "judgements at a time (default: one a core; on a GPU 2)")
      ->check(CLI::Range(1, 256));
  command.add_option("--run", a.request.run,
                     "name of the run (default: go on with the last one of this kind)");
  command.add_flag("--new", a.request.begin_new, "begin another run instead of going on");
  command.add_flag("--with-statement", a.request.with_statement,
                   "add the problem's statement with its hints to the prompt; recorded");
  command.add_option(
      "--gpu", a.request.gpu,
      "the GPU that the prompt names, where the kernels are judged on another machine: h100, 4090 …");
  add_judge_options(command, a.request.judge);
  add_format(command, context);
}

Result<ExitCode> search(const Context& context, const std::string& kind, const Json& settings,
                        MachineArguments& a) {
  CAPSTONE_TRY(const auto provider, provider_from(a.provider, context));
  const Terminal& t = context.terminal;
  a.request.kind = kind;
  a.request.settings = settings;
  a.request.provider = provider.get();
  machine::RunInfo info;
  workflows::MachineEvents events;
  events.begun = [&](const workflows::MachineRun& run) {
    info = run.info;
    t.say(run.tree.empty() ? fmt::format("{}: asking {}", info.name, provider->description())
                           : fmt::format("{}: going on: {}", info.name, progress_text(run.tree, info)));
  };
  events.changed = [&](const machine::Tree& tree, const machine::Node& node) {
    if (node.state == machine::NodeState::kDone) t.say(node_line(node, t));
    if (t.interactive()) t.progress(progress_text(tree, info));
  };
  const auto outcome = workflows::search_by_machine(a.request, context, context.progress(), events);
  t.end_progress();
  if (!outcome) {
    if (!info.name.empty() && outcome.error().code != ExitCode::kInterrupted)
      t.say(fmt::format("{} keeps everything until here; the same command goes on", info.name));
    return fail(outcome.error());
  }
  if (context.json) {
    t.out(json_of(outcome->run).dump(2));
    return ExitCode::kDone;
  }
  t.out(run_text(outcome->run, t));
  t.out("ended: " + outcome->ended);
  const std::string best = machine::summarise(outcome->run.tree, info).best;
  t.out(best.empty() ? "next: capstone machine show"
                     : fmt::format("next: capstone machine show {} · capstone machine take {}", best, best));
  return ExitCode::kDone;
}

Result<const machine::Node*> node_of(const workflows::MachineRun& run, const std::string& name) {
  if (const machine::Node* node = machine::find_node(run.tree, name)) return node;
  return fail(fmt::format("{} has no node `{}`", run.info.name, printable(name)), {},
              "capstone machine show lists them");
}

Result<ExitCode> show(const Context& context, const MachineArguments& a) {
  const Terminal& t = context.terminal;
  CAPSTONE_TRY(const workflows::MachineRun run, workflows::machine_run(a.run, context));
  if (!a.html.empty()) {
    CAPSTONE_TRY(const fs::path page, workflows::write_machine_page(run, a.html, context));
    t.out(page.string());
    return ExitCode::kDone;
  }
  if (a.node.empty()) {
    if (context.json) {
      Json json = json_of(run);
      CAPSTONE_TRY(json["environment"], workflows::environment_of(run, context));
      t.out(json.dump(2));
      return ExitCode::kDone;
    }
    t.out(tree_text(run, t));
    t.out();
    t.out(run_text(run, t));
    return ExitCode::kDone;
  }
  CAPSTONE_TRY(const machine::Node* node, node_of(run, a.node));
  CAPSTONE_TRY(const workflows::NodeTexts texts, workflows::texts_of(*node, context));
  if (context.json) {
    Json json = *node;
    json["prompt"] = to_utf8(texts.prompt);
    json["reply"] = to_utf8(texts.reply);
    json["code"] = texts.code;
    json["judge"] = texts.verdict;
    t.out(json.dump(2));
    return ExitCode::kDone;
  }
  if (a.part == "prompt" || a.part == "reply" || a.part == "code") {
    t.out(a.part == "prompt" ? texts.prompt : a.part == "reply" ? texts.reply : texts.code);
    return ExitCode::kDone;
  }
  t.out(node_line(*node, t));
  if (!node->idea.empty()) t.out(t.fold("idea: " + node->idea));
  auto fates = machine::fates_of(run.tree);
  for (const machine::IdeaFate& fate : fates[node->name])
    t.out(t.fold(fmt::format("{}. {}{}", fate.number, fate.text,
                             fate.same_as.empty() ? "" : " (merged with " + fate.same_as + ")")));
  for (const std::string& note : node->notes) t.out(t.fold("note: " + note));
  for (const std::string& label : node->labels) t.out(t.fold("label: " + label));
  if (node->correct()) t.out("kind: " + node->behaviour.cell());
  if (!texts.verdict.empty()) t.out(texts.verdict);
  t.out(fmt::format("next: capstone machine show {} --part prompt|reply|code", node->name));
  return ExitCode::kDone;
}

Result<ExitCode> list(const Context& context) {
  CAPSTONE_TRY(const machine::Archive archive, workflows::machine_archive(context));
  CAPSTONE_TRY(const auto runs, archive.runs());
  Table table({"run", "settings", "judged", "correct", "asked", "ended"}, {false, false, true, true});
  Json all = Json::array();
  for (const machine::RunInfo& info : runs) {
    CAPSTONE_TRY(const machine::Tree tree, archive.tree(info));
    const machine::Summary s = machine::summarise(tree, info);
    table.row({info.name, info.settings.dump(), fmt::format("{} of {}", s.judged, s.kernels),
               std::to_string(s.correct), info.provider, info.ended.empty() ? "no" : info.ended});
    all.push_back({{"run", info.name},
                   {"search", info.kind},
                   {"settings", info.settings},
                   {"judged", s.judged},
                   {"correct", s.correct},
                   {"provider", info.provider},
                   {"ended", info.ended}});
  }
  context.terminal.out(context.json ? all.dump(2) : table.text(context.terminal));
  return ExitCode::kDone;
}

// The kernel becomes an attempt: it is judged once more, and the ledger has its exact prompt and reply.
Result<ExitCode> take(const Context& context, MachineArguments& a) {
  CAPSTONE_TRY(const workflows::MachineRun run, workflows::machine_run(a.run, context));
  CAPSTONE_TRY(const machine::Node* node, node_of(run, a.node));
  CAPSTONE_TRY(const workflows::AddReplyOutcome outcome,
               workflows::take_node(run, *node, a.request.judge, context, context.progress()));
  const Terminal& t = context.terminal;
  t.out(fmt::format("{} is attempt {} now, in llm/attempt-{}/", node->name, outcome.attempt.number,
                    outcome.attempt.number));
  if (!outcome.measurements.empty()) t.out(verdict_table(outcome.measurements, t));
  return workflows::exit_code_of(outcome.measurements);
}

}  // namespace

void add_machine(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("machine", "search with a language model: sample, refine, evolve");
  command->require_subcommand(1);
  auto a = std::make_shared<MachineArguments>();

  auto* sample = command->add_subcommand("sample", "k independent tries of one prompt, judged as they come");
  sample->add_option("-k", a->sample.k, "tries (default 10)")->check(CLI::Range(1, 100000));
  add_search_options(*sample, *a, context);
  sample->callback([&context, &action, a] {
    action = [&context, a] { return search(context, "sample", machine::json_of(a->sample), *a); };
  });

  auto* refine =
      command->add_subcommand("refine", "turns that remember: each gets the judge's words on the last");
  refine->add_option("--turns", a->refine.turns, "of a chain (default 8)")->check(CLI::Range(1, 1000));
  refine->add_option("--chains", a->refine.chains, "independent ones (default 1)")
      ->check(CLI::Range(1, 1000));
  add_search_options(*refine, *a, context);
  refine->callback([&context, &action, a] {
    action = [&context, a] { return search(context, "refine", machine::json_of(a->refine), *a); };
  });

  auto* evolve = command->add_subcommand("evolve", "ideas in English, implementations of each, rounds");
  evolve->add_option("--rounds", a->evolve.rounds, "(default 5)")->check(CLI::Range(1, 1000));
  evolve->add_option("--islands", a->evolve.islands, "populations that rarely meet (default 2)")
      ->check(CLI::Range(1, 100));
  evolve->add_option("--ideas", a->evolve.ideas, "of a round and an island (default 4)")
      ->check(CLI::Range(1, 100));
  evolve->add_option("--each", a->evolve.each, "implementations of an idea (default 2)")
      ->check(CLI::Range(1, 100));
  evolve->add_option("--seed", a->evolve.seed, "of the choice of parents (default 1)");
  add_search_options(*evolve, *a, context);
  evolve->callback([&context, &action, a] {
    action = [&context, a] { return search(context, "evolve", machine::json_of(a->evolve), *a); };
  });

  auto* shown = command->add_subcommand("show", "a run as a tree, or one of its nodes");
  shown->add_option("node", a->node, "a node; none: the whole run");
  shown->add_option("--run", a->run, "(default: the newest)");
  shown->add_option("--part", a->part, "all, prompt, reply or code")
      ->check(CLI::IsMember({"all", "prompt", "reply", "code"}));
  shown->add_option("--html", a->html, "write the run as a page to this file");
  add_format(*shown, context);
  shown->callback([&context, &action, a] { action = [&context, a] { return show(context, *a); }; });

  auto* runs = command->add_subcommand("runs", "the runs of this project");
  add_format(*runs, context);
  runs->callback([&context, &action] { action = [&context] { return list(context); }; });

  auto* exported = command->add_subcommand(
      "export", "write all conversations with their rewards as JSON lines, for those who train models");
  exported->add_option("--jsonl", a->jsonl, "the file (default traces.jsonl)");
  exported->callback([&context, &action, a] {
    action = [&context, a]() -> Result<ExitCode> {
      CAPSTONE_TRY(const int count, workflows::write_machine_traces(a->jsonl, context));
      context.terminal.out(fmt::format("{} lines in {}", count, a->jsonl));
      return ExitCode::kDone;
    };
  });

  auto* taken =
      command->add_subcommand("take", "file a node's kernel as an attempt of the model, and judge it again");
  taken->add_option("node", a->node, "its name")->required();
  taken->add_option("--run", a->run, "(default: the newest)");
  add_judge_options(*taken, a->request.judge);
  taken->callback([&context, &action, a] { action = [&context, a] { return take(context, *a); }; });
}

}  // namespace capstone::cli
