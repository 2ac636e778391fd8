#pragma once
// The sealed tier: a recorder writes down what launch() does, a launcher does it without the submission's host code.
// Behind the face of one Runner, so that the gates are the same for both tiers.
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

/// One submission in the sealed tier: its device code and the plans made of it so far. Shared by the runners that play it.
class SealedKernel {
 public:
  struct Programs {
    std::function<StartedRunner()> recorder;  ///< untrusted: sandboxed, loads the submission
    std::function<StartedRunner()> launcher;  ///< ours
  };

  SealedKernel(Programs programs, std::vector<std::byte> device_code)
      : programs_(std::move(programs)), device_code_(std::move(device_code)) {}

  /// A launcher of its own with the device code in it.
  StartedRunner start(const std::shared_ptr<SealedKernel>& self);

  /// What the submission's launch (or `what`: "prepare") puts on the GPU, recorded now or before.
  /// @param request  args, workspace, prepared, as for a worker's run
  tl::expected<const Plan*, WorkerFailure> record(const std::string& what, const Json& request, std::size_t arena_bytes);

  /// From now on a recorder lives only while it records: nothing of the submission may run beside a clock.
  void close_recorder() {
    keep_recorder_ = false;
    recorder_.reset();
  }

  /// Why this submission cannot be sealed; empty while nothing spoke against it.
  const std::string& refusal() const { return refusal_; }
  /// Notes of the recorder about what plans leave out.
  const std::set<std::string>& notes() const { return notes_; }
  /// Mangled names of the kernels that plans launch, and of all that the device code holds.
  const std::set<std::string>& launched() const { return launched_; }
  const std::set<std::string>& defined() const { return defined_; }

 private:
  friend class SealedRunner;
  tl::expected<Runner*, WorkerFailure> recorder();
  tl::expected<const Plan*, WorkerFailure> plan(const std::string& key, const Json& request, std::size_t arena_bytes);
  WorkerFailure refuse(std::string why);

  Programs programs_;
  std::vector<std::byte> device_code_;
  std::unique_ptr<Runner> recorder_;
  bool keep_recorder_ = true;
  std::map<std::string, Plan> plans_;         ///< by what was asked: arguments and offsets
  std::string refusal_;
  std::set<std::string> notes_, launched_, defined_;
  std::mutex starting_;                       ///< guards defined_: several launchers may start at once
};

/// `report_kind` of a failure that only means "not in this tier".
inline constexpr const char* kNotSealed = "not_sealed";

}  // namespace capstone
