#pragma once
// What percentage of the hardware's peak a time is, and which roof it stands under.
#include <string>

#include "harness/model/problem.h"
#include "harness/timing/device.h"

namespace capstone {

/// @source Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
struct Roofline {
  double percent = 0;    ///< [%] floor_ms / measured; 0 when there is no ceiling to compare with
  std::string peak;      ///< of what: "3.35 TB/s HBM3 (data sheet)"
  std::string bound_by;  ///< "memory", "compute" or "latency"
  double floor_ms = 0;   ///< [ms] the time of a kernel that reaches the binding roof
};

/// A launch costs about this much; work that needs less is bound by it.
inline constexpr double kLaunchFloorMs = 0.005;

/// @param cost             of the best possible algorithm
/// @param ms               measured
/// @param launch_floor_ms  [ms] an empty kernel on this machine, or kLaunchFloorMs
Roofline roofline(const Cost& cost, double ms, const DevicePeaks& peaks, Precision precision,
                  double launch_floor_ms = kLaunchFloorMs);

}  // namespace capstone
