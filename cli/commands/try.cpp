#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "cli/show_try.h"
#include "harness/workflows/try_kernel.h"

namespace capstone::cli {
namespace {

Result<ExitCode> try_once(const Context& context, const workflows::TryRequest& request) {
  CAPSTONE_TRY(const auto kernel, workflows::kernel_to_try(request, context));
  CAPSTONE_TRY(const auto outcome, workflows::try_kernel(request, kernel, context, context.progress()));
  if (context.json) {
    context.terminal.out(Json(outcome.measurement).dump(2));
  } else {
    show_try(context, outcome);
    if (kernel.name == "human")
      context.terminal.out(outcome.measurement.gate_one == GateOne::kPassed
                               ? "next: capstone measure -m \"what you changed\" --expect 1.3x"
                               : "next: change one thing, then again: capstone try");
  }
  return workflows::exit_code_of({outcome.measurement});
}

}  // namespace

void add_try(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("try", "build and check the kernel; nothing is recorded or timed");
  auto request = std::make_shared<workflows::TryRequest>();
  command->add_option(
      "kernel", request->what,
      "human (default), llm, together, a .cu or .py file, or a reference kernel by number or name");
  command->add_option("--problem", request->problem, "of a file outside a project: the problem it solves");
  command->add_option("--size", request->size, "one case of this size instead of all: rows=7,cols=33")
      ->type_name("SIZES");
  command
      ->add_option(
          "--input", request->inputs,
          "one case with inputs of zeros, ones, one-hot, iota or from FILE.npy; NAME=ones for one tensor")
      ->type_name("FILL")
      ->allow_extra_args(false);
  add_gate_one_options(*command, request->judge);
  add_format(*command, context);
  command->callback(
      [&context, &action, request] { action = [&context, request] { return try_once(context, *request); }; });
}

}  // namespace capstone::cli
