// `capstone together`: the kernel that student, model and profiler make with each other.
#include "harness/workflows/together.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "harness/base/text.h"
#include "harness/project/version_source.h"

namespace capstone::cli {
namespace {

Result<ExitCode> begin(const Context& context, const std::string& from) {
  CAPSTONE_TRY(const auto begun, workflows::begin_together(from, context));
  const std::string file = "together/" + begun.file.filename().string();
  if (context.json) {
    context.terminal.out(Json{{"file", file}, {"from", begun.from}}.dump(2));
    return ExitCode::kDone;
  }
  context.terminal.out(fmt::format("{}, copied from {}", file, begun.from));
  context.terminal.out(context.terminal.fold(
      "change it with the model (capstone llm prompt --feedback) and the profiler (capstone explain "
      "together, "
      "capstone profile together); it earns no marks and changes nothing about the other two"));
  context.terminal.out("next: capstone measure together -m \"who changed what\"");
  return ExitCode::kDone;
}

Json json_of(const WhoseLines& lines) {
  return {{"human", lines.human}, {"model", lines.model}, {"both", lines.both}, {"new", lines.fresh}};
}

Result<ExitCode> history(const Context& context) {
  CAPSTONE_TRY(const auto history, workflows::together_here(context));
  const Terminal& t = context.terminal;
  if (context.json) {
    Json steps = Json::array();
    for (const TogetherStep& step : history.steps)
      steps.push_back({{"version", step.version},
                       {"reason", history.ledger.reason("together", step.version)},
                       {"gate_one", label_of(step.judged->gate_one)},
                       {"gate_two", label_of(step.judged->gate_two)},
                       {"lines", json_of(step.lines)},
                       {"added", json_of(step.added)},
                       {"removed", step.removed},
                       {"profiled", step.profiled}});
    t.out(Json{{"begun_from", history.begun_from}, {"versions", steps}}.dump(2));
    return ExitCode::kDone;
  }
  if (history.steps.empty()) {
    t.out(history.begun_from.empty()
              ? "nothing yet. next: capstone together begin"
              : fmt::format("begun from {}, not measured yet. next: capstone measure together",
                            history.begun_from));
    return ExitCode::kDone;
  }
  if (!history.begun_from.empty()) t.out("begun from " + history.begun_from);
  Table table(
      {"version", "verdict", "lines", "by hand", "the model's", "in both", "new here", "profiler before it"},
      {false, false, true, true, true, true, true});
  for (const TogetherStep& step : history.steps) {
    const auto part = [](int all, int added) { return fmt::format("{} (+{})", all, added); };
    const WhoseLines &all = step.lines, &added = step.added;
    table.row({step.version, expectation_and_result(history.ledger, *step.judged),
               fmt::format("{} (-{})", all.all(), step.removed), part(all.human, added.human),
               part(all.model, added.model), part(all.both, added.both), part(all.fresh, added.fresh),
               step.profiled.empty() ? "-" : step.profiled});
  }
  t.out(table.text(t));
  t.out(t.fold(
      "lines that say something; in brackets those added or removed since the version before. by hand: "
      "also in an earlier version of human/kernel.cu; the model's: also in an earlier reply"));
  return ExitCode::kDone;
}

}  // namespace

void add_together(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "together",
      "a third kernel, made by you, the model and the profiler with each other; it earns no marks");
  command->require_subcommand(1);
  auto* start = command->add_subcommand("begin", "copy a kernel to together/kernel.cu and go on from there");
  auto from = std::make_shared<std::string>("human");
  start
      ->add_option("--from", *from,
                   "human (default), llm (the newest attempt), or a measured version: v3, attempt-2")
      ->type_name("KERNEL");
  add_format(*start, context);
  start->callback([&context, &action, from] { action = [&context, from] { return begin(context, *from); }; });
  auto* told = command->add_subcommand("history", "who changed what, from version to version");
  add_format(*told, context);
  told->callback([&context, &action] { action = [&context] { return history(context); }; });
}

}  // namespace capstone::cli
