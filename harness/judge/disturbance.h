#pragma once
// What the GPU reports between samples, and when that means that a block must not count.
#include <span>
#include <string>

#include "harness/base/json.h"
#include "harness/judge/timed_arm.h"

namespace capstone {

/// Slowdowns that no kernel is to blame for (heat, a power brake), and other processes that compute on the
/// GPU. A power cap is recorded, not held against a block: it is how fast this GPU is.
/// @param telemetry  as the GPU host reports it
/// @return why a block must not count; empty: it may
std::string disturbance_in(const Json& telemetry);

/// SM clocks more than 2 % apart within one block. Empty: they are not, or they are unknown.
std::string clock_change(std::span<const PowerReading> readings);

/// The clock and the power of a telemetry report.
PowerReading power_of(const Json& telemetry);

}  // namespace capstone
