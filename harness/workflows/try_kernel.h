#pragma once
// `try`: gate one for a kernel as it is on disk. Nothing is recorded, nothing is timed, no version is made.
#include <string>
#include <vector>

#include "harness/workflows/judge_and_record.h"

namespace capstone::workflows {

struct TryRequest {
  std::string what = "human";  ///< "human", "llm", "together", a .cu or .py file, or a reference kernel
  std::string problem;         ///< of a file or reference kernel; empty: the project's
  /// One case of the user's choice instead of the planned ones; see chosen_case().
  std::string size;
  std::vector<std::string> inputs;
  JudgeOptions judge;
};

struct TryOutcome {
  Measurement measurement;  ///< without a version and without times
  std::string shown;        ///< the source as the user knows it: "human/kernel.cu"
  double build_seconds = 0, check_seconds = 0;
  bool is_stub = false;  ///< the source is what `init` wrote
};

/// What `try` judges.
struct TriedKernel {
  Problem problem;
  std::filesystem::path source;
  std::filesystem::path root;  ///< of the project; of a file outside a project: its folder
  std::string name;            ///< "human", "llm", "together", or "kernel" for any other
  std::string shown;           ///< relative to the root
};

/// @error no project here; no such kernel; the pinned problem was changed.
Result<TriedKernel> kernel_to_try(const TryRequest& request, const Workspace& workspace);

/// Builds and checks a kernel. On the CPU nvcc is left out; the builds that find bad accesses and races are
/// not, unless `judge.quick` is set.
/// @error the machine's fault, see judge(); a wrong kernel is an outcome.
Result<TryOutcome> try_kernel(const TryRequest& request, const TriedKernel& kernel,
                              const Workspace& workspace, const ProgressSink& progress);

}  // namespace capstone::workflows
