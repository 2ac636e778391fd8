#pragma once
#include "runtime/scheduler.h"

namespace capstone_emu {

/// The range of addresses that holds the stacks of all fibers.
struct StackRange {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};
extern StackRange fiber_stacks;

inline constexpr std::size_t kStackGuard = 64 * 1024;  // [B] below a stack, not to be touched

/// Size of a CUDA thread's stack, in bytes.
std::size_t stack_size();

/// A new stack with a guard below. Null when there is no memory left for one.
Fiber* allocate_fiber(std::size_t index);

/// Lays out a fresh stack so that switching to the returned pointer calls `entry` on it.
void* prepare_stack(Fiber& fiber, void (*entry)());

}  // namespace capstone_emu
