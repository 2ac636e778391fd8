#pragma once
// Triton kernels as CUDA C++: device code that Triton compiled, and a launch() that follows the Python that
// launches it. Such a file is a candidate like any other .cu, so its execution is replayed.
#include <string>
#include <vector>

#include "harness/runtime/build/cuda.h"
#include "harness/runtime/python/runner.h"

namespace capstone {

/// How an exported file begins.
inline constexpr const char* kExportedMark = "// Exported from ";

struct ExportedKernel {
  std::string source;       ///< a .cu of its own: device code in arrays, and launch()
  std::size_t kernels = 0;  ///< versions that Triton compiled
  std::size_t covered = 0;  ///< of the sets of sizes
  std::string triton;       ///< "3.6.0"
};

/// Follows forward() of `work.candidate` in the sandbox, at each of `sets`, the measured sizes first. Needs
/// no GPU. launch() throws at sizes that none of the sets stands for.
/// @param arch  "sm_90a": what the device code is for
/// @error PyTorch or Triton is missing; forward() does what cannot be exported: the error says what.
Result<ExportedKernel> export_triton(const PythonWork& work, const std::vector<Sizes>& sets,
                                     const std::string& arch, const CudaToolkit& toolkit,
                                     const Sandbox& sandbox);

}  // namespace capstone
