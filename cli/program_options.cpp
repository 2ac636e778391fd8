#include "cli/program_options.h"

#include <CLI/CLI.hpp>

namespace capstone::cli {

void add_program_options(CLI::App& command, ProgramRequest& request) {
  command.add_option("-s,--source", request.more_sources, "another .cu or .cpp of the program")
      ->allow_extra_args(false)
      ->check(CLI::ExistingFile);
  command.add_option("-I,--include", request.include_folders, "another folder of headers")
      ->allow_extra_args(false)
      ->check(CLI::ExistingDirectory);
  command.add_option("-D,--define", request.definitions, "macro: NAME or NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--std", request.standard, "language, as for nvcc; default c++17")
      ->check(CLI::IsMember({"c++11", "c++14", "c++17", "c++20", "c++23"}));
  command.add_flag("--openmp", request.openmp, "obey #pragma omp (nvcc -Xcompiler -fopenmp)");
  command
      .add_option("--arch", request.cuda_arch,
                  "value of __CUDA_ARCH__; default 900, or 1000 or 800 when only that can run")
      ->check(CLI::Range(500, 1300));
  command
      .add_option_function<long>(
          "--timeout", [&request](long seconds) { request.timeout = std::chrono::seconds(seconds); },
          "seconds")
      ->check(CLI::Range(1, 3600));
  command
      .add_option_function<std::size_t>(
          "--memory", [&request](std::size_t gib) { request.max_memory = gib << 30; }, "memory limit in GiB")
      ->check(CLI::Range(1, 1024))
      ->default_str(std::to_string(request.max_memory >> 30));
}

}  // namespace capstone::cli
