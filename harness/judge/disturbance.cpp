#include "harness/judge/disturbance.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

namespace capstone {
namespace {

// Whether a process is this one or was started by it, however many steps down. A number that /proc does not
// know belongs to another namespace; its owner cannot be determined.
bool is_ours(long pid) {
  for (int depth = 0; depth < 64 && pid > 1; ++depth) {
    if (pid == ::getpid()) return true;
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    std::string text;
    if (!std::getline(stat, text)) return depth == 0;
    const std::size_t after = text.rfind(')');
    if (after == std::string::npos || std::sscanf(text.c_str() + after + 1, " %*c %ld", &pid) != 1)
      return true;
  }
  return false;
}

}  // namespace

std::string disturbance_in(const Json& telemetry) {
  constexpr std::uint64_t kHardware = 0x8, kThermalSoftware = 0x20, kThermalHardware = 0x40,
                          kPowerBrake = 0x80;
  const std::uint64_t throttle = telemetry.value("throttle", std::uint64_t{0});
  if (throttle & (kThermalSoftware | kThermalHardware)) return "the GPU slowed down because it was hot";
  if (throttle & (kHardware | kPowerBrake)) return "the GPU slowed down because of its power supply";
  if (auto busy = telemetry.find("busy"); busy != telemetry.end() && busy->is_array())
    for (const Json& process : *busy)
      if (!is_ours(process.value("pid", 0)))
        return fmt::format("another process ({}) computes on this GPU", process.value("pid", 0));
  return {};
}

std::string clock_change(std::span<const PowerReading> readings) {
  std::vector<double> clocks;
  for (const PowerReading& reading : readings)
    if (reading.sm_mhz > 0) clocks.push_back(reading.sm_mhz);
  if (clocks.size() < 2) return {};
  const auto [low, high] = std::minmax_element(clocks.begin(), clocks.end());
  if (*high <= 1.02 * *low) return {};
  return fmt::format("the SM clock went from {:.0f} to {:.0f} MHz between arms", *low, *high);
}

PowerReading power_of(const Json& telemetry) {
  return {telemetry.value("sm_mhz", 0.0), telemetry.value("watts", 0.0)};
}

}  // namespace capstone
