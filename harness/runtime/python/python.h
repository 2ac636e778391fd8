#pragma once
// A Python that has PyTorch.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/resources.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

/// An interpreter with PyTorch, found without importing it (which takes seconds): whether it runs is seen
/// when a worker starts.
struct Python {
  std::filesystem::path program;  ///< the interpreter itself, behind wrappers of version managers
  std::string version;            ///< "3.12.3"
  std::string torch;              ///< "2.11.0+cu130"
  std::string triton;             ///< "3.6.0"; empty: without Triton, or without the NumPy it needs
  std::vector<std::filesystem::path> paths;  ///< sys.path: where its packages lie
  std::vector<std::filesystem::path> roots;  ///< what an isolated process must be able to read

  /// What a process of it is given: its packages, and folders for what PyTorch and Triton build.
  /// `path_variable`: programs that builds need, in addition to those of the system.
  std::vector<std::pair<std::string, std::string>> environment(const std::filesystem::path& builds,
                                                               const std::string& path_variable) const;
};

/// `wanted`: a program, or "auto" for the first python3 on PATH that has PyTorch.
/// `more`: folders of further packages, separated by colons; they go before its own.
/// @error none has; the one that was asked for does not run or has none; a folder of `more` is missing. Exit
/// code kEnvironment.
Result<Python> find_python(const std::string& wanted, const Resources& resources,
                           const std::string& more = {});

/// PyTorch is there and cannot be imported. `said`: the last line that Python printed.
Error broken_torch(const Python& python, const std::string& said);

/// What an import of PyTorch told.
struct ImportedTorch {
  std::string built_for;  ///< "CUDA 13.0", "the CPU"
  bool computes = false;  ///< on this machine's GPU
};
/// Imports it once, which takes seconds. @error what the import said; exit code kEnvironment.
Result<ImportedTorch> import_torch(const Python& python);

}  // namespace capstone
