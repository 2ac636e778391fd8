#include "harness/timing/roofline.h"

#include <fmt/format.h>

#include "harness/base/text.h"

namespace capstone {
namespace {

std::string origin(const DevicePeaks& peaks) { return peaks.from_data_sheet ? "data sheet" : peaks.source; }

}  // namespace

Roofline roofline(const Cost& cost, double ms, const DevicePeaks& peaks, Precision precision,
                  double launch_floor_ms) {
  const ComputePeak compute = peak_of(peaks, precision);
  const double memory_ms = peaks.bandwidth > 0 ? cost.bytes / peaks.bandwidth * 1e3 : 0;
  const double compute_ms = compute.flops > 0 ? cost.flops / compute.flops * 1e3 : 0;
  Roofline result;
  if (memory_ms <= 0 && compute_ms <= 0)
    return result;  // nothing is known: no percentage is better than a made-up one
  const bool memory = memory_ms > compute_ms;
  result.floor_ms = memory ? memory_ms : compute_ms;
  result.bound_by = result.floor_ms < launch_floor_ms ? "latency" : memory ? "memory" : "compute";
  result.percent = ms > 0 ? 100.0 * result.floor_ms / ms : 0;
  result.peak =
      memory ? fmt::format("{} {} ({})", format_bandwidth(peaks.bandwidth), peaks.memory, origin(peaks))
             : fmt::format("{} {} ({})", format_flops(compute.flops), compute.units, origin(peaks));
  return result;
}

}  // namespace capstone
