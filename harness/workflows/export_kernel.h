#pragma once
// `export kernel`: a Triton kernel as CUDA C++.
#include <string>
#include <vector>

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

/// The sets of sizes that launch() is written for: those of the problem's definition, the measured one first,
/// and many that may be the judge's hidden ones. Always the same. @error see plan_cases()
Result<std::vector<Sizes>> sizes_to_export(const Problem& problem);

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
