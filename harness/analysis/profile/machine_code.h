#pragma once
// What the compiler says about a kernel: registers, shared memory, spills, and which instructions it chose.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/resources.h"
#include "harness/analysis/profile/record.h"
#include "harness/runtime/sandbox/sandbox.h"
#include "harness/model/problem.h"

namespace capstone {

struct CompiledKernels {
  std::vector<KernelProfile> kernels;  ///< in the order of the compiler
  std::string no_listing;              ///< why there is no machine code to read; empty: it was read
};

/// Compiles `source` for `arch` and reads ptxas's words and, where cuobjdump is there, the machine code. Fills registers, static_shared_bytes,
/// spill_bytes, stack_bytes and the instructions.
/// @param sandbox  nullptr: the source is our own
/// @error no nvcc; it does not compile (exit code 1).
Result<CompiledKernels> machine_code(const Problem& problem, const std::filesystem::path& source, const std::string& arch, const Resources& resources,
                                     const Sandbox* sandbox);

/// The kernels in what `ptxas -v` printed, by mangled name.
std::vector<KernelProfile> read_ptxas(const std::string& log);
/// Counts the instructions of a listing (a line each, "Function : NAME" before those of a kernel) into the kernels of those mangled names.
void read_sass(const std::string& listing, std::vector<KernelProfile>& kernels);

}  // namespace capstone
