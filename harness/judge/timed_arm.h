#pragma once
// One arm of gate two: how its process starts, what it took, and what the judge's own clock says about it.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/judge/gate_one.h"
#include "harness/runtime/worker/worker.h"

namespace capstone {

/// What the L2 cache holds when a sample begins. In both states it holds nothing of the problem's tensors.
enum class CacheState {
  kClean,  ///< lines that were only read: an eviction is free
  kDirty,  ///< lines that were written: each eviction is a write to memory first
};
inline constexpr std::array kCacheStates{CacheState::kClean, CacheState::kDirty};
/// "clean" or "dirty"
std::string_view name_of(CacheState state);

/// Times of one arm under one state of the cache.
struct Series {
  std::vector<std::vector<double>> samples;        ///< [restart][sample] ms, in the order of the launches
  std::vector<std::vector<double>> block_medians;  ///< [restart][block] ms

  /// The samples of all restarts, in one list.
  std::vector<double> all() const;
};

/// What the GPU reported after an arm's part of a block, or after a sustained run.
struct PowerReading {
  double sm_mhz = 0, watts = 0;  ///< 0: not reported
};

/// Launches back to back on a warm chip.
struct SustainedRun {
  double ms = 0;  ///< a launch
  PowerReading power;
};

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
  Series clean, dirty;             ///< GPU-cold
  std::vector<double> warm, host;  ///< [restart] ms
  std::vector<double> plain,
      host_timer;                   ///< ms: a launch that nothing hides, by events and by the judge's clock
  std::vector<PowerReading> power;  ///< [block]
  std::vector<SustainedRun> sustained;              ///< [round]; empty: not asked for
  std::set<std::string> libraries;                  ///< shared objects that were seen in its process
  std::optional<std::vector<std::string>> kernels;  ///< a Python candidate's, by name
  double launch_ms = 0;                             ///< of the host, as the process says
  double compile_seconds = 0;                       ///< [s] the longest first call of a Python candidate
  int extra_checks = 0;                             ///< launches that were checked and not timed
  std::optional<CaseResult> failure;                ///< a run at the measured size that went wrong
  GateOne failed_as = GateOne::kWrong;              ///< how
  bool left_out = false;                            ///< an optional baseline that failed
  std::string note;                                 ///< what a reader should know of this baseline

  Series& series(CacheState state) { return state == CacheState::kClean ? clean : dirty; }
  const Series& series(CacheState state) const { return state == CacheState::kClean ? clean : dirty; }
  /// A claim: timed by a process that runs untrusted code.
  bool is_claim() const { return !trusted && !trusted_clock; }
};

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

/// [ns] The longest spin for a launch from Python, which takes longer than one from C++. The judge's own
/// clock does not see it either.
inline constexpr double kHidePython = 300e3;

/// The longest spin [ns] behind which an arm's launch may hide. What an untrusted process says of its
/// launches is believed up to 50 us, in Python up to 300 us; a trusted process up to 2 ms. In a race with a
/// candidate in Python every arm is limited to 300 us: a copy of a reference whose launches take milliseconds
/// must take what the reference takes.
double longest_hidden_ns(const std::vector<TimedArm>& arms, std::size_t a);

/// "bound by its launches: the host takes 2.94 ms for one, 0.3 ms of it hidden", where most of an arm's time
/// is that; else empty.
std::string bound_by_launches(const std::vector<TimedArm>& arms, std::size_t a);

/// [restart][block] log(median of the reference / median of the arm).
std::vector<std::vector<double>> log_ratios(const Series& reference, const Series& arm);

}  // namespace capstone
