#pragma once
// `explain` and `profile`: what a kernel does and why it takes its time. No verdict.
#include <functional>
#include <string>

#include "harness/analysis/profile/profile.h"
#include "harness/model/explanation.h"
#include "harness/runtime/build/run_program.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct ExplainKernelRequest {
  std::string what = "human";  ///< "human", "llm", a .cu file, or a reference kernel by number or name
  std::string problem;         ///< of a file or reference kernel; empty: the project's
  std::string size;            ///< "rows=64,cols=512"; empty: the problem's
  std::string device;          ///< of the modelled time: "h100"; empty: none
  std::string html;            ///< a heat map is written to this file; empty: none
};
/// Counts on the CPU what each line costs. A candidate's explanation is recorded in the ledger.
/// @error too large for the emulator; the source changed in the meantime.
Result<Explanation> explain_kernel(const ExplainKernelRequest& request, const Workspace& workspace,
                                   const ProgressSink& progress);

struct ExplainProgramRequest {
  ProgramRequest program;
  std::string html;  ///< as above
};
/// Whether the file is a .cu with a main().
bool is_program(const std::filesystem::path& file);
/// Counts on the CPU what each line of each kernel costs that a whole program launches. `say` gets what the
/// compiler, or a program that makes a mistake, printed.
/// @error it does not build, does not end, or makes a mistake that the instrumented build finds.
Result<Explanation> explain_program(ExplainProgramRequest request, const Workspace& workspace,
                                    const ProgressSink& progress,
                                    const std::function<void(const std::string&)>& say);

struct ProfileKernelRequest {
  std::string what = "human", problem, size;  ///< as above
  std::string device;                         ///< of the roofline; empty: this machine's, else an H100
  std::string arch;  ///< of the machine code: "sm_86"; empty: this GPU's, else sm_90a
  std::string csv;   ///< ncu's table is written to this file; empty: none
  bool use_ncu = true;
};
/// Counters of ncu, or what compiler and emulator know without it. A candidate's profile is recorded in the
/// ledger.
Result<Profile> profile_kernel(const ProfileKernelRequest& request, const Workspace& workspace,
                               const ProgressSink& progress);

}  // namespace capstone::workflows
