#pragma once
// The Python worker as a Runner.
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/model/problem.h"
#include "harness/runtime/python/parent.h"
#include "harness/runtime/python/python.h"
#include "harness/runtime/worker/worker.h"

namespace capstone {

/// What a Python worker runs, and where.
struct PythonWork {
  const Problem* problem = nullptr;
  const Resources* resources = nullptr;
  const Python* python = nullptr;
  std::string arm = "eager";        ///< of the problem's own reference.py
  std::filesystem::path candidate;  ///< a .py with ModelNew instead; empty: the arm
  std::filesystem::path builds;     ///< a folder for what PyTorch and Triton compile; made on demand
  bool cuda = false;
  std::filesystem::path toolkit;  ///< of CUDA, for extensions that are compiled; empty: none
  /// Forks the workers of arms; null: a process for each. Candidates always have a process of their own.
  std::shared_ptr<PythonParent> parent{};
  /// Becomes the arm's first worker; null: none does.
  std::shared_ptr<PythonParent> first{};
};

/// `report_kind` of failures before anything ran: the source does not load; there is no such arm; PyTorch
/// does not work here. And of one at any time.
inline constexpr const char* kDoesNotLoad = "build";
inline constexpr const char* kNoSuchArm = "no_such_arm";
inline constexpr const char* kNoPyTorch = "environment";
inline constexpr const char* kOutOfMemory = "out_of_memory";

/// A first call at new sizes compiles what it needs: it may take so much longer than a run. Its own limit, so
/// that a compiler's time never stands for a kernel's.
inline constexpr std::chrono::seconds kCompileLimit{120};

/// Starts harness/runtime/python/worker/worker.py, which imports PyTorch and loads the sources. Requests of
/// the gates name tensors by their place alone; shapes, types and names are added on the way. There is no
/// workspace; what a module's prepare() makes it keeps itself.
StartedRunner start_python(const PythonWork& work, const Sandbox& sandbox);

/// Starts another script of that folder, one that loads the candidate as the worker does and answers requests
/// of its own. Nothing is added to its requests.
StartedRunner start_python_script(const PythonWork& work, const Sandbox& sandbox, const std::string& script);

/// A parent for workers of arms, with the interpreter, the folders and the device of `work`. `compile`: it
/// also imports what torch.compile needs, and can only become a worker. Null: it does not start.
std::shared_ptr<PythonParent> start_python_parent(const PythonWork& work, const Sandbox& trusted,
                                                  bool compile = false);

}  // namespace capstone
