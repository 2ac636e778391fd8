#pragma once
// What the compiler reports about a kernel: registers, shared memory, spills, and the instructions that it
// chose.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/analysis/profile/record.h"
#include "harness/base/error.h"
#include "harness/base/resources.h"
#include "harness/model/problem.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

struct CompiledKernels {
  std::vector<KernelProfile> kernels;  ///< in the compiler's order
  std::string no_listing;              ///< why the machine code could not be read; empty: it was read
};

/// Compiles `source` for `arch` and reads the output of ptxas and, if cuobjdump is available, the machine
/// code. Fills registers, static_shared_bytes, spill_bytes, stack_bytes and the instructions.
/// @param sandbox  nullptr: the source is trusted
/// @error no nvcc; it does not compile (exit code 1).
Result<CompiledKernels> machine_code(const Problem& problem, const std::filesystem::path& source,
                                     const std::string& arch, const Resources& resources,
                                     const Sandbox* sandbox);

/// The kernels in the output of `ptxas -v`, by mangled name.
std::vector<KernelProfile> read_ptxas(const std::string& log);
/// Counts the instructions of a listing (one per line, "Function : NAME" before those of a kernel) into the
/// kernels with those mangled names.
void read_sass(const std::string& listing, std::vector<KernelProfile>& kernels);

}  // namespace capstone
