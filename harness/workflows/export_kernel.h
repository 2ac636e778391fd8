#pragma once
// `export kernel`: a Triton kernel as CUDA C++.
#include <string>

#include "harness/runtime/python/exported_kernel.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct ExportKernelRequest {
  std::string file;     ///< a .py with ModelNew
  std::string problem;  ///< that it solves; empty: the project's
  std::string out = "launch.cu";
  std::string arch;             ///< "sm_90a"; empty: of this machine's GPU, else sm_90a
  std::string python = "auto";  ///< as `ladder --python`
  std::string python_path;
};

struct ExportedFile {
  std::filesystem::path file;
  std::string arch;
  ExportedKernel kernel;
  std::size_t sets = 0;  ///< of sizes that were tried
};
/// Writes the exported kernel. @error no Triton or CUDA Toolkit here; what forward() does cannot be exported.
Result<ExportedFile> export_kernel(const ExportKernelRequest& request, const Workspace& workspace,
                                   const ProgressSink& progress);

}  // namespace capstone::workflows
