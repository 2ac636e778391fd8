#pragma once
// Every piece of memory that kernels may access and whose bounds are known: tensors, workspace, what
// cudaMalloc gave, variables of the program. Used to tell which one an address just misses.
#include <cstddef>
#include <optional>
#include <string>

namespace capstone_emu {

struct Allocation {
  const char* begin;
  std::size_t bytes;
  std::string name;  ///< "tensor x", "memory of cudaMalloc"
  bool freed = false;
};
/// For memory of cudaMalloc.
inline constexpr const char* kDeviceMemory = "memory of cudaMalloc";

/// Replaces what was known about the same first byte.
void add_allocation(Allocation allocation);
void forget_allocation(const void* begin);

/// How many pieces of memory of cudaMalloc are not freed.
long live_device_allocations();

/// For messages: `kernel` lives as long as the program.
void saw_launch_of(const char* kernel);

/// The allocation that holds the address, else the one that it lies nearest to, if any is within 1 MiB.
std::optional<Allocation> nearest_allocation(const void* address);

}  // namespace capstone_emu
