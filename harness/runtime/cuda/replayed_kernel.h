#pragma once
// Replayed execution: a capture worker writes down what launch() does, a replayer does it without the submission's host code.
// It implements Runner, so that the gates treat both kinds of execution alike.
#include <functional>
#include <map>
#include <mutex>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/runtime/cuda/captured_graph.h"
#include "harness/runtime/worker/worker.h"

namespace capstone {

/// One submission in replayed execution: its device code and the captured graphs made of it so far. Shared by the runners that replay it.
class ReplayedKernel {
 public:
  struct Programs {
    std::function<StartedRunner()> capture_worker;  ///< untrusted: sandboxed, loads the submission
    std::function<StartedRunner()> replayer;  ///< ours
  };

  ReplayedKernel(Programs programs, std::vector<std::byte> device_code)
      : programs_(std::move(programs)), device_code_(std::move(device_code)) {}

  /// A replayer of its own with the device code in it.
  StartedRunner start(const std::shared_ptr<ReplayedKernel>& self);

  /// What the submission's launch (or `what`: "prepare") puts on the GPU, recorded now or before.
  /// @param request  args, workspace, prepared, as for a worker's run
  tl::expected<const CapturedGraph*, WorkerFailure> record(const std::string& what, const Json& request, std::size_t arena_bytes);

  /// From now on a capture worker lives only while it records: no code of the submission may run while it is timed.
  void close_capture_worker() {
    keep_capture_worker_ = false;
    capture_worker_.reset();
  }

  /// Why this submission cannot be replayed; empty while nothing spoke against it.
  const std::string& refusal() const { return refusal_; }
  /// Notes of the capture worker about what captured graphs leave out.
  const std::set<std::string>& notes() const { return notes_; }
  /// Mangled names of the kernels that captured graphs launch, and of all that the device code holds.
  const std::set<std::string>& launched() const { return launched_; }
  const std::set<std::string>& defined() const { return defined_; }

 private:
  friend class ReplayedRunner;
  tl::expected<Runner*, WorkerFailure> capture_worker();
  tl::expected<const CapturedGraph*, WorkerFailure> graph(const std::string& key, const Json& request, std::size_t arena_bytes);
  WorkerFailure refuse(std::string why);

  Programs programs_;
  std::vector<std::byte> device_code_;
  std::unique_ptr<Runner> capture_worker_;
  bool keep_capture_worker_ = true;
  std::map<std::string, CapturedGraph> graphs_;         ///< by what was asked: arguments and offsets
  std::string refusal_;
  std::set<std::string> notes_, launched_, defined_;
  std::mutex starting_;                       ///< guards defined_: several replayers may start at once
};

/// `report_kind` of a failure that only means "not in this execution".
inline constexpr const char* kNotReplayable = "not_replayable";

}  // namespace capstone
