#pragma once
// Gate two: interleaved, verified timing of every arm in one run.
#include <memory>
#include <string>
#include <vector>

#include "harness/judge/player_client.h"
#include "harness/model/device.h"

namespace capstone {

/// One timed arm: how to start its worker and what came of it.
struct TimedArm {
  std::string name;                                    ///< "native", "A/A", "human", "llm"
  std::function<StartedRunner()> start_worker;
  std::size_t workspace_bytes = 0;
  bool trusted = false;                                ///< ours: a failure is the machine's
  bool trusted_clock = false;                          ///< timed by a process of ours: its times are no claims

  std::string label;
  std::vector<std::vector<double>> samples;            ///< [restart][sample] ms, GPU-cold
  std::vector<std::vector<double>> block_medians;      ///< [restart][block] ms
  std::vector<double> hot, host;                       ///< [restart] ms
  std::optional<CaseResult> failure;                   ///< a timed run that was wrong, crashed or hung
};

struct GateTwoSetup {
  const Problem* problem;
  const Oracle* oracle;
  Player* player;
  double budget_seconds;                               ///< a contestant
  std::chrono::milliseconds run_timeout;
  Narration say;
};

struct GateTwoOutcome {
  bool budget_spent = false;
  std::string void_because;                            ///< set when nothing may be concluded
  Json telemetry;                                      ///< before and after
  double seconds = 0;
};

/// Times the arms at the `measure` size. arms[0] is the reference, arms[1] the reference a second time. Every timed run
/// has inputs that never existed before, and its output is compared with what the reference makes of the same inputs;
/// the reference is checked against the oracle at 2,048 random elements first.
/// @error the machine's fault (the reference itself wrong, no GPU memory), interrupted.
Result<GateTwoOutcome> gate_two(const GateTwoSetup& setup, std::vector<TimedArm>& arms);

/// [restart][block] log(median of the reference / median of the arm).
std::vector<std::vector<double>> log_ratios(const TimedArm& reference, const TimedArm& arm);

}  // namespace capstone
