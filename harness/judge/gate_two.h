#pragma once
// Gate two: interleaved, verified timing of every arm in one run.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/judge/gate_one.h"
#include "harness/runtime/cuda/gpu_host_client.h"
#include "harness/timing/device.h"

namespace capstone {

/// One timed arm: how to start its worker and what came of it.
struct TimedArm {
  std::string name;  ///< "native", "eager", "A/A", "human", "llm"
  std::function<StartedRunner()> start_worker;
  PrivateBytes wants;          ///< at the measured size
  bool trusted = false;        ///< ours: a failure is the machine's
  bool trusted_clock = false;  ///< timed by a trusted process; else its times are claims
  bool python = false;         ///< runs in the Python worker
  bool optional = false;       ///< a baseline that may fail: it is left out then, and `note` says why

  std::string label;
  std::vector<std::vector<double>> samples;        ///< [restart][sample] ms, GPU-cold
  std::vector<std::vector<double>> block_medians;  ///< [restart][block] ms
  std::vector<double> warm, host;                  ///< [restart] ms
  std::vector<double> plain,
      host_timer;                   ///< ms: a launch that nothing hides, by events and by the judge's clock
  std::set<std::string> libraries;  ///< shared objects that were seen in its process
  std::optional<std::vector<std::string>> kernels;  ///< a Python candidate's, by name
  double launch_ms = 0;                             ///< of the host, as the process says
  std::optional<CaseResult> failure;                ///< a timed run that was wrong, crashed or hung
  GateOne failed_as = GateOne::kWrong;              ///< which of these
  bool left_out = false;                            ///< an optional baseline that failed
  std::string note;                                 ///< what a reader should know of this baseline

  /// The samples of all restarts, in one list.
  std::vector<double> all_samples() const;
};

struct GateTwoSetup {
  const Problem* problem;
  const Oracle* oracle;
  GpuHost* gpu_host;
  double budget_seconds;  ///< a candidate
  std::chrono::milliseconds run_timeout;
  Narration say;
  int restarts = 5;  ///< of every worker, at least
  std::size_t reference =
      0;  ///< the arm whose time is gate two's measure; the one behind it is the same again
  std::size_t first_candidate = 2;  ///< arms from here on are judged
};

struct GateTwoOutcome {
  bool budget_spent = false;
  std::string void_because;  ///< set when nothing may be concluded
  Json telemetry;            ///< before and after, and what was run again for which reason
  double seconds = 0;
};

/// Times the arms at the `measure` size. Every timed run has inputs that never existed before, and its output
/// is compared with what arms[0], the native baseline, makes of the same inputs; that is checked against the
/// oracle at 2,048 random elements first. Where the oracle is reference.py, arms[0] is PyTorch's eager,
/// checked once against float64 on the GPU. PyTorch's arms are the specification: where their rounding leaves
/// the tolerance, a note says so, and they run on.
/// @error the machine's fault (the reference itself wrong, no GPU memory), interrupted.
Result<GateTwoOutcome> gate_two(const GateTwoSetup& setup, std::vector<TimedArm>& arms);

/// What the judge's clock says about an arm whose times are claims.
struct HostTimerView {
  double ms = 0;            ///< a launch, as seen from outside, less what the way there and back takes
  double slack_ms = 0;      ///< how far that may be off
  bool agrees = true;       ///< with the arm's own GPU-cold median
  bool host_bound = false;  ///< the process says that launch() keeps the host busy for the difference
};
/// `reference`: a trusted arm of the same kind (native or Python), whose events are true, to learn what the
/// way takes. Empty without enough samples. The arm is contradicted where outside > 1.05 · claimed + 3 µs +
/// slack.
std::optional<HostTimerView> host_timer_view(const TimedArm& reference, const TimedArm& arm);

/// The longest spin [ns] behind which an arm's launch may hide. What an untrusted process says of its
/// launches is believed up to 50 us, in Python up to 300 us; a trusted process up to 2 ms. In a race with a
/// candidate in Python every arm is limited to 300 us: a copy of a reference whose launches take milliseconds
/// must take what the reference takes.
double longest_hidden_ns(const std::vector<TimedArm>& arms, std::size_t a);

/// "bound by its launches: the host takes 2.94 ms for one, 0.3 ms of it hidden", where most of an arm's time
/// is that; else empty.
std::string bound_by_launches(const std::vector<TimedArm>& arms, std::size_t a);

/// [restart][block] log(median of the reference / median of the arm).
std::vector<std::vector<double>> log_ratios(const TimedArm& reference, const TimedArm& arm);

}  // namespace capstone
