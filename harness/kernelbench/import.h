#pragma once
// Imports a file in KernelBench's form as a problem.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/judge/judge.h"
#include "harness/model/problem.h"

namespace capstone {

struct KernelBenchFile {
  std::filesystem::path path;  ///< "…/level1/19_ReLU.py"
  int level = 1;               ///< KernelBench's level, which becomes the problem's tier
  int number = 0;              ///< the leading number of its name; 0: none
  std::string name;            ///< "19_ReLU"
  /// "kb1_19_relu": the problem's id.
  std::string id() const;
};

/// Reads level, number and name from the file's path. `level`: 0 takes it from the folder ("level2",
/// "level_2"), else 1.
KernelBenchFile kernelbench_file(const std::filesystem::path& path, int level);

struct ImportRequest {
  KernelBenchFile file;
  std::filesystem::path folder;  ///< where to write the definition; created, or overwritten file by file
  std::string python = "auto";   ///< the interpreter whose PyTorch runs the file
  double memory_bytes = 8e9;     ///< [B] of GPU memory that a run may need
};

struct ImportedProblem {
  Problem problem;
  std::vector<std::string> notes;  ///< facts that the user should know: shrunk sizes, degenerate outputs,
                                   ///< modules that behave differently
};

/// Runs the file in the sandbox (with limits on time and memory) to find inputs, parameters, shapes and
/// types. Writes problem.yaml, statement.md and reference.py. Then tries the variations of the inputs and the
/// triviality audit: variations that the reference cannot be judged by are excluded under `outside_domain`,
/// tricks that pass are excused under `because`, and the notes report both. The reference itself in float64
/// is the ground truth (`oracle: reference.py`).
/// @error the file is not in KernelBench's form, or cannot be judged: one line gives the reason (kUsage). No
///   PyTorch (kEnvironment).
Result<ImportedProblem> import_kernelbench(const ImportRequest& request, const Resources& resources,
                                           const Narration& say);

}  // namespace capstone
