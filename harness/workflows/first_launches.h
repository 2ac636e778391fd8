#pragma once
// The first launches of a process, for `capstone demo warmup`.
#include <vector>

#include "harness/workflows/workspace.h"

namespace capstone::workflows {

struct FirstLaunches {
  struct Launch {
    double at_ms = 0;     ///< since the process began
    double host_us = 0;   ///< by the host's clock, from the call to the end
    double event_us = 0;  ///< by the GPU's events
  };
  std::string time, tool, device;
  double preparation_us = 0;     ///< of the first one: context and memory
  std::int64_t pause_after = 0;  ///< launches before the pause of two seconds
  std::vector<Launch> launches;  ///< in order; at least one before and one after the pause

  /// The median of the last half before the pause.
  Launch steady() const;
};
Json first_launches_json(const FirstLaunches& run);
/// @error a field is missing or has another type.
Result<FirstLaunches> read_first_launches(const Json& json);

/// The runs that are kept with the program, by device.
std::vector<FirstLaunches> recorded_first_launches(const Resources& resources);

/// Starts a process of its own on the GPU and times its launches.
/// @error no GPU, no nvcc.
Result<FirstLaunches> run_first_launches(const Workspace& workspace, const ProgressSink& progress);

}  // namespace capstone::workflows
