// capstone run FILE.cu -- args: a whole CUDA program on the CPU, or one in Python.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/context.h"
#include "cli/program_options.h"
#include "harness/runtime/build/run_program.h"

namespace capstone::cli {
namespace {

Result<ExitCode> run(const Context& context, const ProgramRequest& request) {
  CAPSTONE_TRY(ProgramRun program, run_emulated_program(request, context.resources));
  const BuildResult& build = program.build.result;
  if (context.verbose) context.terminal.say(build.command);
  if (!build.ok && program.build.not_judgeable.empty()) context.terminal.say(build.log);
  CAPSTONE_CHECK(expect_built(program));
  if (!program.build.arch_note.empty()) context.terminal.say(program.build.arch_note);
  const ProcessResult& process = program.process;
  if (request.every_check) std::cerr << process.err << std::flush;  // findings first: they are what was asked
  std::cout << process.out << std::flush;
  if (!request.every_check) std::cerr << process.err << std::flush;
  CAPSTONE_CHECK(expect_ended(program, request));
  return static_cast<ExitCode>(process.status);
}

}  // namespace

void add_run(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("run", "build a CUDA program with its own main() for the CPU and run it");
  auto request = std::make_shared<ProgramRequest>();
  auto file = std::make_shared<std::string>();
  command
      ->add_option("file", *file,
                   "the .cu, or a .py whose PyTorch extensions hold the CUDA code; its output and exit "
                   "code are passed through")
      ->required();
  command->add_option(
      "arguments", request->arguments,
      "for the program's main(), after --; for a .py with ModelNew and no get_inputs(), the .py of "
      "its problem");
  add_program_options(*command, *request);
  command->add_option("--schedule", request->schedule, "order of threads")
      ->check(CLI::IsMember({"forward", "reverse", "random", "warp"}));
  command->add_option("--seed", request->seed, "of the random schedule");
  auto check = std::make_shared<std::string>();
  command
      ->add_option(
          "--check", *check,
          "also look for: races (and unwritten memory), memory (bad accesses, undefined arithmetic), "
          "or all: memory first, then races; the first line of the output names the first mistake")
      ->check(CLI::IsMember({"races", "memory", "all"}))
      ->option_text("races|memory|all");
  command->add_option("--python", request->python, "of a .py: a python3 that has PyTorch, or auto");
  command->add_option("-o,--output", request->output, "write the program to this file, and do not run it");
  command->callback([&context, &action, request, file, check] {
    request->source = *file;
    request->every_check = *check == "all";
    if (*check == "races") request->variant = BuildVariant::kInstrumented;
    if (*check == "memory") request->variant = BuildVariant::kAsan;
    action = [&context, request] { return run(context, *request); };
  });
}

}  // namespace capstone::cli
