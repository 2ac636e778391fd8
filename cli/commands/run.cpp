// capstone run FILE.cu -- args: a whole CUDA program on the CPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/context.h"
#include "harness/runtime/build/run_program.h"

namespace capstone::cli {
namespace {

Result<ExitCode> run(const Context& context, const ProgramRequest& request) {
  const std::string name = request.source.string();
  CAPSTONE_TRY(ProgramRun program, run_emulated_program(request, context.resources));
  const BuildResult& build = program.build.result;
  if (context.verbose) context.terminal.say(build.command);
  if (!program.build.not_judgeable.empty())
    return fail("not judgeable on the CPU: " + program.build.not_judgeable, {}, "run it on a GPU",
                ExitCode::kEnvironment);
  if (!build.ok) {
    context.terminal.say(build.log);
    const CompilerMessage none{}, &first = build.first_error ? *build.first_error : none;
    const bool header_missing = first.text.ends_with("No such file or directory");
    return fail("the program does not build: " + first.text, fmt::format("{}:{}", first.file, first.line),
                header_missing
                    ? "the compiler searches only the source's folder: add other header folders with -I"
                    : "",
                ExitCode::kGateOneFailed);
  }
  if (!program.build.arch_note.empty()) context.terminal.say(program.build.arch_note);
  const ProcessResult& process = program.process;
  if (request.every_check) std::cerr << process.err << std::flush;  // findings first: they are what was asked
  std::cout << process.out << std::flush;
  if (!request.every_check) std::cerr << process.err << std::flush;
  switch (process.end) {
    case ProcessResult::End::kExited:
      return static_cast<ExitCode>(process.status);
    case ProcessResult::End::kTimedOut:
      return fail(fmt::format("the program did not end within {} s", request.timeout.count()), name,
                  "the CPU is a thousand times slower than a GPU: use smaller sizes, or raise --timeout",
                  ExitCode::kGateOneFailed);
    case ProcessResult::End::kTooMuchOutput:
      return fail("the program wrote more than 8 MiB", name, "print less", ExitCode::kGateOneFailed);
    case ProcessResult::End::kTooMuchMemory:
      return fail(fmt::format("the program needed more than {} GiB", request.max_memory >> 30), name,
                  "use smaller sizes, or raise --memory", ExitCode::kGateOneFailed);
    case ProcessResult::End::kTooManyTasks:
      return fail("the program started too many threads or processes", name,
                  "use fewer blocks in a cooperative launch", ExitCode::kGateOneFailed);
    case ProcessResult::End::kSignalled:
      return fail(fmt::format("the program died of signal {} in its host code", process.status), name, {},
                  ExitCode::kGateOneFailed);
    case ProcessResult::End::kInterrupted:
      return ExitCode::kInterrupted;
  }
  return ExitCode::kInternal;
}

}  // namespace

void add_run(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("run", "build a CUDA program with its own main() for the CPU and run it");
  auto request = std::make_shared<ProgramRequest>();
  auto file = std::make_shared<std::string>();
  auto timeout = std::make_shared<long>(request->timeout.count());
  command->add_option("file", *file, "the .cu; its output and exit code are passed through")->required();
  command->add_option("arguments", request->arguments, "for the program's main(), after --");
  command->add_option("-s,--source", request->more_sources, "another .cu or .cpp of the program")
      ->allow_extra_args(false)
      ->check(CLI::ExistingFile);
  command->add_option("-I,--include", request->include_folders, "another folder of headers")
      ->allow_extra_args(false)
      ->check(CLI::ExistingDirectory);
  command->add_option("-D,--define", request->definitions, "macro: NAME or NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--std", request->standard, "language, as for nvcc; default c++17")
      ->check(CLI::IsMember({"c++11", "c++14", "c++17", "c++20", "c++23"}));
  command->add_flag("--openmp", request->openmp, "obey #pragma omp (nvcc -Xcompiler -fopenmp)");
  command
      ->add_option("--arch", request->cuda_arch,
                   "value of __CUDA_ARCH__; default 900, or 1000 or 800 when only that can run")
      ->check(CLI::Range(500, 1300));
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
  command->add_option("--timeout", *timeout, "seconds")->check(CLI::Range(1, 3600));
  auto memory = std::make_shared<std::size_t>(request->max_memory >> 30);
  command->add_option("--memory", *memory, "memory limit in GiB")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->callback([&context, &action, request, file, check, timeout, memory] {
    request->max_memory = *memory << 30;
    request->source = *file;
    request->every_check = *check == "all";
    if (*check == "races") request->variant = BuildVariant::kInstrumented;
    if (*check == "memory") request->variant = BuildVariant::kAsan;
    request->timeout = std::chrono::seconds(*timeout);
    action = [&context, request] { return run(context, *request); };
  });
}

}  // namespace capstone::cli
