#pragma once
// PyTorch extensions with CUDA code on a machine without a GPU: a process of Python builds and calls them by
// harness/emulator/torch/capstone_torch.py.
#include <filesystem>
#include <string>

#include "harness/runtime/build/run_program.h"
#include "harness/runtime/worker/worker.h"

namespace capstone {

/// Whether a Python source builds an extension by load() or load_inline(), as far as its text shows.
bool builds_extensions(const std::filesystem::path& source);

/// The module of Python.
std::filesystem::path extension_script(const Resources& resources);

/// Adds what such a process must read, and its variables. It builds in `builds`, which is made, with the
/// parts of the emulator that this function compiles into the user's cache.
/// @param options  of `capstone run`, for each build: "--check races"
/// @error no compiler, no CUDA headers; the disk is full.
Result<void> allow_extensions(Surroundings& into, const Resources& resources,
                              const std::filesystem::path& builds, const std::string& options = {});

/// What run_emulated_program() does with a .py. `spec`: limits and variables of the program.
Result<ProgramRun> run_python_program(const ProgramRequest& request, ProcessSpec spec,
                                      const Resources& resources);

}  // namespace capstone
