#pragma once
// Building with nvcc: submissions, native baselines and, where the shipped ones do not fit, our own CUDA
// programs.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "harness/runtime/build/build.h"

namespace capstone {

struct CudaToolkit {
  std::filesystem::path nvcc;
  std::filesystem::path root;  ///< …/cuda: bin/, include/, lib64/
  std::string version;         ///< "13.0"
  std::filesystem::path libraries() const;
};

/// nvcc on PATH, else /usr/local/cuda. @error none found; the hint says how to get one.
Result<CudaToolkit> find_toolkit(const Resources& resources);

/// capstone's own CUDA programs by name ("capstone-gpu-host", "capstone-worker-cuda", …), built in parallel
/// by this machine's nvcc for `arch` from the sources under share/ and kept in the cache. `say` hears about
/// builds, which take some seconds.
Result<std::vector<std::filesystem::path>> own_cuda_programs(
    const std::vector<std::string>& names, const std::string& arch, const Resources& resources,
    const std::function<void(const std::string&)>& say);

/// The first error of nvcc's or g++'s output.
std::optional<CompilerMessage> first_compiler_error(const std::string& log);
/// The error of a line that comes to a header of CuTe or CUTLASS, where these are not on the path.
std::optional<CompilerMessage> lacks_cutlass(const std::string& log);

}  // namespace capstone
