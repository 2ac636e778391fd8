#pragma once
// How many warps an SM can hold of a kernel, from what the compiler says about it.
#include <optional>
#include <string>

namespace capstone {

/// What an SM has, by compute capability. @source CUDA C++ Programming Guide 13.0, table "Technical Specifications per Compute Capability".
struct SmLimits {
  int warps = 0, blocks = 0;
  int registers = 65536;
  int register_unit = 256;             ///< allocated to a warp in such pieces
  int shared_bytes = 0, shared_unit = 128;
  int reserved_shared_bytes = 0;       ///< of each block, taken by the system
};
/// @param arch  "sm_90a"; empty result: not in the table
std::optional<SmLimits> sm_limits(const std::string& arch);

struct Occupancy {
  int blocks = 0;                      ///< on an SM at once
  double percent = 0;                  ///< of the warps that an SM holds
  std::string limiter;                 ///< as in KernelProfile
};
/// @param threads  of a block; registers: of a thread
Occupancy theoretical_occupancy(const SmLimits& sm, int threads, int registers, int shared_bytes);

}  // namespace capstone
