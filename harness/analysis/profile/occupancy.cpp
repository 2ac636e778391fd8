#include "harness/analysis/profile/occupancy.h"

#include <algorithm>
#include <cstdlib>

namespace capstone {
namespace {

constexpr int kWarp = 32, kKiB = 1024;

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

std::optional<SmLimits> sm_limits(const std::string& arch) {
  switch (std::atoi(arch.starts_with("sm_") ? arch.c_str() + 3 : "0")) {
    case 70:
      return SmLimits{64, 32, 65536, 256, 96 * kKiB, 256, 0};
    case 75:
      return SmLimits{32, 16, 65536, 256, 64 * kKiB, 256, 0};
    case 80:
      return SmLimits{64, 32, 65536, 256, 164 * kKiB, 128, kKiB};
    case 86:
      return SmLimits{48, 16, 65536, 256, 100 * kKiB, 128, kKiB};
    case 87:
      return SmLimits{48, 16, 65536, 256, 164 * kKiB, 128, kKiB};
    case 89:
      return SmLimits{48, 24, 65536, 256, 100 * kKiB, 128, kKiB};
    case 90:
    case 100:
    case 103:
      return SmLimits{64, 32, 65536, 256, 228 * kKiB, 128, kKiB};
    case 110:
      return SmLimits{48, 24, 65536, 256, 228 * kKiB, 128, kKiB};
    case 120:
    case 121:
      return SmLimits{48, 24, 65536, 256, 100 * kKiB, 128, kKiB};
    default:
      return std::nullopt;
  }
}

Occupancy theoretical_occupancy(const SmLimits& sm, int threads, int registers, int shared_bytes) {
  const int warps = std::max(1, (threads + kWarp - 1) / kWarp);
  Occupancy result{sm.blocks, 0, "blocks"};
  auto limit = [&](int blocks, const char* name) {
    if (blocks < result.blocks) result = {blocks, 0, name};
  };
  limit(sm.warps / warps, "block size");
  if (registers > 0) {
    // Registers are allocated to whole warps, which are spread over the four partitions of an SM.
    const int warps_by_registers = sm.registers / round_up(registers * kWarp, sm.register_unit) / 4 * 4;
    limit(warps_by_registers / warps, "registers");
  }
  const int shared = round_up(shared_bytes + sm.reserved_shared_bytes, sm.shared_unit);
  if (shared > 0) limit(sm.shared_bytes / shared, "shared memory");
  result.percent = 100.0 * result.blocks * warps / sm.warps;
  return result;
}

}  // namespace capstone
