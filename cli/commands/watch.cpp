#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "cli/open_points.h"
#include "cli/show_try.h"
#include "harness/base/text.h"
#include "harness/workflows/watch_kernel.h"

namespace capstone::cli {
namespace {

Result<ExitCode> watch(const Context& context, const workflows::TryRequest& request) {
  const Terminal& t = context.terminal;
  bool first = true;
  CAPSTONE_CHECK(workflows::watch_kernel(
      request, context, t.interactive() ? context.progress() : workflows::ProgressSink(),
      {[&](const workflows::TryOutcome& outcome) {
         t.clear();
         if (!first && !t.interactive()) t.out();
         first = false;
         show_try(context, outcome);
         t.out(
             t.paint(Tone::kDim, fmt::format("{} · waiting for the next save · Ctrl-C ends", clock_time())));
       },
       [&](const workflows::TriedKernel& kernel) {
         t.out(fmt::format("{} is not there any more: waiting until it is saved again", kernel.shown));
       },
       [&](const Result<std::vector<Finding>>& review) {
         t.out(fmt::format("{} worklog.md: {}", clock_time(),
                           review ? open_points_line(*review) : std::string(trim(render(review.error())))));
       }}));
  return ExitCode::kDone;
}

}  // namespace

void add_watch(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "watch", "try the kernel again on every save, and review the worklog on its saves, until Ctrl-C");
  auto request = std::make_shared<workflows::TryRequest>();
  command->add_option("kernel", request->what, "human (default), or a .cu or .py file");
  command->add_option("--problem", request->problem, "of a file outside a project: the problem it solves");
  add_gate_one_options(*command, request->judge);
  command->callback(
      [&context, &action, request] { action = [&context, request] { return watch(context, *request); }; });
}

}  // namespace capstone::cli
