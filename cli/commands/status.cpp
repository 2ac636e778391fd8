#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/context.h"
#include "harness/base/json.h"
#include "harness/workflows/project_status.h"

namespace capstone::cli {
namespace {

using workflows::ProjectStatus;
using workflows::ProjectStep;

const char* name_of(ProjectStep::State state) {
  return state == ProjectStep::State::kDone ? "done" : state == ProjectStep::State::kNext ? "next" : "open";
}

Json json_of(const ProjectStatus& status) {
  Json steps = Json::array();
  for (const ProjectStep& step : status.steps)
    steps.push_back({{"step", step.name}, {"state", name_of(step.state)}, {"detail", step.detail}});
  return {{"problem", status.problem},
          {"steps", steps},
          {"hints", {{"of", status.hints}, {"taken", status.hints_taken}}},
          {"next", status.next},
          {"why", status.why}};
}

Result<ExitCode> status(const Context& context) {
  CAPSTONE_TRY(const ProjectStatus status, workflows::project_status(context));
  const Terminal& t = context.terminal;
  if (context.json) {
    t.out(json_of(status).dump(2));
    return ExitCode::kDone;
  }
  t.out(fmt::format("{} in {}", t.paint(Tone::kBold, status.title), status.root.string()));
  for (const ProjectStep& step : status.steps) {
    const Tone tone = step.state == ProjectStep::State::kDone   ? Tone::kGood
                      : step.state == ProjectStep::State::kNext ? Tone::kWarn
                                                                : Tone::kDim;
    t.out(t.fold(fmt::format("  {}  {:<7}  {}", t.paint(tone, name_of(step.state)), step.name, step.detail),
                 17));
  }
  if (status.hints)
    t.out(fmt::format("        hints    {} of {} taken{}", status.hints_taken, status.hints,
                      status.hints_taken < status.hints ? "; the next one: capstone hint" : ""));
  if (status.next.empty())
    t.out("everything is done: hand in the archive");
  else
    t.out(t.fold(status.why) + "\nnext: " + status.next);
  return ExitCode::kDone;
}

}  // namespace

void add_status(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("status", "where the project stands, what is missing, and what is next");
  add_format(*command, context);
  command->callback([&context, &action] { action = [&context] { return status(context); }; });
}

}  // namespace capstone::cli
