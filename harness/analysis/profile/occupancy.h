#pragma once
// Computes how many warps of a kernel an SM can hold, from the compiler's report.
#include <optional>
#include <string>

namespace capstone {

/// The limits of an SM, by compute capability.
/// @source CUDA C++ Programming Guide 13.0, table "Technical Specifications per Compute Capability".
struct SmLimits {
  int warps = 0, blocks = 0;
  int registers = 65536;
  int register_unit = 256;  ///< registers are allocated to a warp in multiples of this
  int shared_bytes = 0, shared_unit = 128;
  int reserved_shared_bytes = 0;  ///< [B] of each block, reserved by the system
};
/// @param arch  for example "sm_90a"; the result is empty if the table does not have it
std::optional<SmLimits> sm_limits(const std::string& arch);

struct Occupancy {
  int blocks = 0;       ///< that fit on an SM at once
  double percent = 0;   ///< of the warps that an SM can hold
  std::string limiter;  ///< as in KernelProfile
};
/// @param threads    per block
/// @param registers  per thread
Occupancy theoretical_occupancy(const SmLimits& sm, int threads, int registers, int shared_bytes);

}  // namespace capstone
