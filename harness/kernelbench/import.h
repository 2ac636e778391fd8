#pragma once
// A problem of ours from a file in KernelBench's form.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/judge/judge.h"
#include "harness/model/problem.h"

namespace capstone {

struct KernelBenchFile {
  std::filesystem::path path;  ///< "…/level1/19_ReLU.py"
  int level = 1;               ///< KernelBench's level, our tier
  int number = 0;              ///< the leading number of its name; 0: none
  std::string name;            ///< "19_ReLU"
  /// "kb1_19_relu": the problem's id.
  std::string id() const;
};

/// What the path of a file says. `level`: 0 takes it from the folder ("level2", "level_2"), else 1.
KernelBenchFile kernelbench_file(const std::filesystem::path& path, int level);

struct ImportRequest {
  KernelBenchFile file;
  std::filesystem::path folder;  ///< where the definition shall be written; made, or overwritten file by file
  std::string python = "auto";   ///< whose PyTorch runs the file
  double memory_bytes = 8e9;     ///< [B] of the GPU that a run must fit
};

struct ImportedProblem {
  Problem problem;
  std::vector<std::string> notes;  ///< what its user should know: shrunk sizes, degenerate outputs, modules that behave otherwise
};

/// Runs the file in the sandbox (under limits of time and memory) to find inputs, parameters, shapes and types, writes problem.yaml,
/// statement.md and reference.py, and tries the variations of the inputs and the triviality audit: variations that the reference cannot be judged by on are
/// left out under `outside_domain`, tricks that pass are excused under `because`, and both are told in the notes. What is right is the reference itself
/// in float64 (`oracle: reference.py`).
/// @error the file is not in KernelBench's form, or cannot be judged: one line says why (kUsage). No PyTorch (kEnvironment).
Result<ImportedProblem> import_kernelbench(const ImportRequest& request, const Resources& resources, const Narration& say);

}  // namespace capstone
