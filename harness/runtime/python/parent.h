#pragma once
// The Python parent: one trusted process that has imported PyTorch and forks the workers of trusted arms, so
// that these need no import. Or it becomes the only worker of an arm.
#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/runtime/worker/worker.h"

namespace capstone {

/// `report_kind` of a fork that the parent refuses, because its imports started threads or initialised CUDA:
/// a child would inherit half of both. Start a process instead.
inline constexpr const char* kCannotFork = "cannot_fork";

/// Safe to use from several threads. Its workers keep it alive; when it dies, they die.
class PythonParent : public std::enable_shared_from_this<PythonParent> {
 public:
  /// Starts it and returns at once; it imports meanwhile.
  static tl::expected<std::shared_ptr<PythonParent>, WorkerFailure> start(std::vector<std::string> argv,
                                                                          const Sandbox& trusted,
                                                                          const WorkerLimits& limits,
                                                                          const Surroundings& more);

  /// A copy of the parent that goes on as worker.py with these arguments. The first call waits for the
  /// import.
  tl::expected<Worker, WorkerFailure> fork(const std::vector<std::string>& arguments,
                                           const WorkerLimits& limits);

  /// The parent itself goes on as worker.py with these arguments. Once; after that it refuses as in fork().
  tl::expected<Worker, WorkerFailure> become(const std::vector<std::string>& arguments);

 private:
  explicit PythonParent(Worker process) : process_(std::move(process)) {}
  /// The wait status of a child that has ended.
  int reap(pid_t child, bool wanted);

  std::mutex mutex_;
  std::optional<Worker> process_;  ///< empty: it has become a worker
  std::optional<tl::expected<void, WorkerFailure>> greeted_;
  std::vector<pid_t> ended_;  ///< children to be reaped with the next request
};

}  // namespace capstone
