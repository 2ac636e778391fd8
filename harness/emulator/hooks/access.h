#pragma once
// One access of a CUDA thread to memory.
#include <cstddef>
#include <cstdint>

#include "harness/emulator/runtime/scheduler.h"

namespace capstone_emu::hooks {

/// CUDA demands that an access of n bytes starts at a multiple of n; x86 does not. `pc` is the return address of the hook.
[[noreturn]] void misaligned(const volatile void* address, std::size_t bytes, bool write, std::uint32_t pc);

inline void require_alignment(const volatile void* address, std::size_t bytes, bool write, std::uint32_t pc) {
  if (__builtin_expect(reinterpret_cast<std::uintptr_t>(address) % bytes != 0, 0) && BlockRunner::current())
    misaligned(address, bytes, write, pc);
}

}  // namespace capstone_emu::hooks
