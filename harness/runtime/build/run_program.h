#pragma once
// Runs a whole CUDA program, its main() included, on the emulated backend.
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/base/resources.h"
#include "harness/base/subprocess.h"
#include "harness/runtime/build/build.h"

namespace capstone {

struct ProgramRequest {
  std::filesystem::path source;                        ///< the .cu
  std::vector<std::filesystem::path> more_sources;     ///< compiled and linked with it
  std::vector<std::string> arguments;                  ///< handed to its main()
  std::vector<std::filesystem::path> include_folders;  ///< of headers outside of the source's folder
  std::vector<std::string> definitions;                ///< of macros: "NAME" or "NAME=VALUE"
  std::string standard = "c++17";
  bool openmp = false;               ///< #pragma omp counts, and OpenMP is linked
  int cuda_arch = 0;                 ///< value of __CUDA_ARCH__; 0: 900, or 800 when only that can be run
  std::string schedule = "forward";  ///< forward, reverse, random or warp
  std::uint64_t seed = 1;            ///< of the random schedule
  BuildVariant variant = BuildVariant::kFast;  ///< what the build is instrumented for
  bool every_check = false;  ///< instead of `variant`: bad accesses first; where none is found, races
  std::chrono::seconds timeout{60};
  std::size_t max_memory = std::size_t{8} << 30;  ///< [B] of the program and all that it starts
  bool confined = true;  ///< false: a program of this project's that needs what the sandbox refuses; only on
                         ///< a GPU
  std::filesystem::path output = {};  ///< the program is kept in this file and not run; empty: it is run
  std::string python = "auto";  ///< of a .py: find_python()
  bool observe = false;  ///< instrumented, whatever `variant` says, and every kernel's counts are reported
};

struct ProgramRun {
  EmulatedArtifact build;
  ProcessResult process{};  ///< how it ended; meaningful when build.result.ok
  Json report =
      {};  ///< of an observed run (harness/runtime/worker/protocol.md); null: it did not get that far
  bool timed_out() const { return process.end == ProcessResult::End::kTimedOut; }
};

/// Builds the program and runs it isolated as a candidate is: no network, no home, limits on time, memory and
/// output. It may read the folder of its source. A .py runs in a Python with PyTorch; the extensions with CUDA
/// code that it loads are built and run in the emulator (harness/emulator/torch/capstone_torch.py).
/// @error no compiler, no CUDA headers, no such file; a source that does not compile is not an Error.
Result<ProgramRun> run_emulated_program(const ProgramRequest& request, const Resources& resources);

/// What names a mistake in what a program printed: a finding, or an error of the CUDA API.
bool names_a_mistake(const std::string& err);
/// @error the program was not built: why, and what to do.
Result<void> expect_built(const ProgramRun& run);
/// @error the program did not end by itself: a limit of the request, or a signal.
Result<void> expect_ended(const ProgramRun& run, const ProgramRequest& request);

struct CudaRun {
  std::string log;          ///< of nvcc, where the program does not build; else empty
  ProcessResult process{};  ///< how it ended; meaningful when it was built
  bool built() const { return log.empty(); }
};

/// As run_emulated_program(), built by nvcc for `arch` ("sm_90a") and run on this machine's GPU. Builds are
/// kept in the cache. What only the emulator knows (schedule, seed, variant, OpenMP) is left out.
/// @error no CUDA Toolkit, no such file; a source that does not compile is not an Error.
Result<CudaRun> run_cuda_program(const ProgramRequest& request, const std::string& arch,
                                 const Resources& resources);

}  // namespace capstone
