#pragma once
// Gate two: interleaved, verified timing of every arm in one run.
#include <string>
#include <vector>

#include "harness/judge/events.h"
#include "harness/judge/timed_arm.h"
#include "harness/runtime/cuda/gpu_host_client.h"

namespace capstone {

struct GateTwoSetup {
  const Problem* problem;
  const Oracle* oracle;
  GpuHost* gpu_host;
  double budget_seconds;  ///< a candidate
  std::chrono::milliseconds run_timeout;
  Narration say;
  int restarts = 3;  ///< of every worker, at least
  std::size_t reference =
      0;  ///< the arm whose time is gate two's measure; the one behind it is the same again
  std::size_t first_candidate = 2;  ///< arms from here on are judged
  bool extra_checks = false;        ///< off the clock: 200 more launches of each candidate
  bool sustained = false;           ///< also launches back to back on a warm chip
  bool quick = false;               ///< a first look: a wide interval is enough
};

struct GateTwoOutcome {
  bool budget_spent = false;
  std::string void_because;  ///< set when nothing may be concluded
  Json telemetry;            ///< before and after, each block's clock and power, and what was run again for
                             ///< which reason
  double seconds = 0;
};

/// Times the arms at the `measure` size. Every timed run has inputs that never existed before, and its output
/// is compared with what arms[0], the native baseline, makes of the same inputs; that is checked against the
/// oracle at 2,048 random elements first. Where the oracle is reference.py, arms[0] is PyTorch's eager,
/// checked once against float64 on the GPU. PyTorch's arms are the specification: where their rounding leaves
/// the tolerance, a note says so, and they run on.
///
/// Each block has as many samples with a clean L2 cache as with a dirty one (CacheState), in turn.
/// @error the machine's fault (the reference itself wrong, no GPU memory), interrupted.
Result<GateTwoOutcome> gate_two(const GateTwoSetup& setup, std::vector<TimedArm>& arms);

}  // namespace capstone
