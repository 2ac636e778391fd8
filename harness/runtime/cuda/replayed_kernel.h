#pragma once
// Replayed execution: a capture worker records what launch() does; a replayer repeats it without the
// submission's host code. It implements Runner, so that the gates are the same for both ways of execution.
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/runtime/cuda/captured_graph.h"
#include "harness/runtime/worker/worker.h"

namespace capstone {

/// One submission in replayed execution: its device code and the graphs captured from it so far. Shared by
/// the runners that replay it.
class ReplayedKernel {
 public:
  struct Programs {
    std::function<StartedRunner()> capture_worker;  ///< untrusted: sandboxed, loads the submission
    std::function<StartedRunner()> replayer;        ///< trusted
  };

  ReplayedKernel(Programs programs, std::vector<std::byte> device_code)
      : programs_(std::move(programs)), device_code_(std::move(device_code)) {}

  /// Starts the capture worker in the background; the first question to it waits.
  void start_capture_worker();

  /// Starts a new replayer that holds the device code.
  StartedRunner start(const std::shared_ptr<ReplayedKernel>& self);

  /// What the submission's launch (or `what`: "prepare") puts on the GPU, captured now or earlier.
  /// @param request  args, workspace, prepared, as for a worker's run
  tl::expected<const CapturedGraph*, WorkerFailure> record(const std::string& what, const Json& request,
                                                           std::size_t arena_bytes);

  /// From now on a capture worker lives only while it records: no code of the submission may run during
  /// timing.
  void close_capture_worker() {
    keep_capture_worker_ = false;
    if (coming_.valid()) coming_.get();
    capture_worker_.reset();
  }

  /// Why this submission cannot be replayed; empty if no reason was found so far.
  const std::string& refusal() const { return refusal_; }
  /// Notes of the capture worker about what captured graphs omit.
  const std::set<std::string>& notes() const { return notes_; }
  /// Mangled names of the kernels that captured graphs launch, and of all kernels in the device code.
  const std::set<std::string>& launched() const { return launched_; }
  const std::set<std::string>& defined() const { return defined_; }

 private:
  friend class ReplayedRunner;
  tl::expected<Runner*, WorkerFailure> capture_worker();
  tl::expected<const CapturedGraph*, WorkerFailure> graph(const std::string& key, const Json& request,
                                                          std::size_t arena_bytes);
  WorkerFailure refuse(std::string why);

  Programs programs_;
  std::vector<std::byte> device_code_;
  std::future<StartedRunner> coming_;  ///< the capture worker, while it starts
  std::unique_ptr<Runner> capture_worker_;
  bool keep_capture_worker_ = true;
  std::map<std::string, CapturedGraph> graphs_;  ///< key: the request's arguments and offsets
  std::string refusal_;
  std::set<std::string> notes_, launched_, defined_;
  std::mutex starting_;  ///< guards defined_: several replayers may start at once
};

/// The `report_kind` of a failure that only means "cannot be replayed".
inline constexpr const char* kNotReplayable = "not_replayable";

}  // namespace capstone
