#pragma once
#pragma GCC system_header
// __pipeline_*: asynchronous copies from global to shared memory.
#include "capstone_emulator/core.h"

static inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes, std::size_t zero_filled = 0,
                                           CAPSTONE_SITE) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    capstone_emu::undefined_behaviour(file, line, "__pipeline_memcpy_async copies 4, 8 or 16 bytes, not %zu", bytes);
  if (reinterpret_cast<std::uintptr_t>(to) % bytes || reinterpret_cast<std::uintptr_t>(from) % bytes)
    capstone_emu::undefined_behaviour(file, line, "__pipeline_memcpy_async: both pointers must be multiples of %zu",
                                      bytes);
  capstone_emu::async_copy(to, from, static_cast<unsigned>(bytes), static_cast<unsigned>(zero_filled));
}
static inline void __pipeline_commit() { capstone_emu::async_commit(); }
static inline void __pipeline_wait_prior(std::size_t still_pending) {
  capstone_emu::async_wait(static_cast<unsigned>(still_pending));
}
