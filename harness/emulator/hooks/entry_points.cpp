// What a candidate built with -fsanitize=thread and -fsanitize-coverage=trace-pc calls. libtsan is not
// linked: the compiler prescribes the names, and these functions replace libtsan's. The return address gives
// the place in the source.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hooks/access.h"

using capstone_emu::hooks::access;
using capstone_emu::hooks::access_range;
using capstone_emu::hooks::atomic_access;
using capstone_emu::hooks::block_executed;
using capstone_emu::hooks::counting;
using capstone_emu::hooks::duties;
using capstone_emu::hooks::memory_is_current;
using capstone_emu::hooks::plain_access;
using capstone_emu::hooks::swap_begins;
using capstone_emu::hooks::this_block;
using capstone_emu::hooks::this_lane;

#define CAPSTONE_PC static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)))

#define CAPSTONE_ACCESSES(N)                                                         \
  void __tsan_read##N(void* p) { plain_access<N, false>(p, CAPSTONE_PC); }           \
  void __tsan_write##N(void* p) { plain_access<N, true>(p, CAPSTONE_PC); }           \
  void __tsan_volatile_read##N(void* p) { access<N, false, true>(p, CAPSTONE_PC); }  \
  void __tsan_volatile_write##N(void* p) { access<N, true, true>(p, CAPSTONE_PC); }  \
  void __tsan_unaligned_read##N(void* p) { access_range(p, N, false, CAPSTONE_PC); } \
  void __tsan_unaligned_write##N(void* p) { access_range(p, N, true, CAPSTONE_PC); }

#define CAPSTONE_FETCH(BITS, T, name)                                   \
  T __tsan_atomic##BITS##_fetch_##name(volatile T* p, T v, int order) { \
    atomic_access(p, sizeof(T), true, true, order, CAPSTONE_PC);        \
    return __atomic_fetch_##name(p, v, __ATOMIC_SEQ_CST);               \
  }

#define CAPSTONE_ATOMICS(BITS, T)                                                                      \
  T __tsan_atomic##BITS##_load(const volatile T* p, int order) {                                       \
    atomic_access(p, sizeof(T), true, false, order, CAPSTONE_PC);                                      \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                       \
  }                                                                                                    \
  void __tsan_atomic##BITS##_store(volatile T* p, T v, int order) {                                    \
    atomic_access(p, sizeof(T), false, true, order, CAPSTONE_PC);                                      \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                          \
  }                                                                                                    \
  T __tsan_atomic##BITS##_exchange(volatile T* p, T v, int order) {                                    \
    atomic_access(p, sizeof(T), true, true, order, CAPSTONE_PC);                                       \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                \
  }                                                                                                    \
  int __tsan_atomic##BITS##_compare_exchange_strong(volatile T* p, T* expected, T v, int order, int) { \
    swap_begins(p, sizeof(T));                                                                         \
    atomic_access(p, sizeof(T), true, true, order, CAPSTONE_PC);                                       \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
  }                                                                                                    \
  int __tsan_atomic##BITS##_compare_exchange_weak(volatile T* p, T* expected, T v, int order, int) {   \
    swap_begins(p, sizeof(T));                                                                         \
    atomic_access(p, sizeof(T), true, true, order, CAPSTONE_PC);                                       \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
  }                                                                                                    \
  CAPSTONE_FETCH(BITS, T, add)                                                                         \
  CAPSTONE_FETCH(BITS, T, sub)                                                                         \
  CAPSTONE_FETCH(BITS, T, and)                                                                         \
  CAPSTONE_FETCH(BITS, T, or)                                                                          \
  CAPSTONE_FETCH(BITS, T, xor)                                                                         \
  CAPSTONE_FETCH(BITS, T, nand)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** p, void*) { plain_access<8, true>(p, CAPSTONE_PC); }
void __tsan_vptr_read(void** p) { plain_access<8, false>(p, CAPSTONE_PC); }

CAPSTONE_ACCESSES(1)
CAPSTONE_ACCESSES(2)
CAPSTONE_ACCESSES(4)
CAPSTONE_ACCESSES(8)
CAPSTONE_ACCESSES(16)
void __tsan_read_range(void* p, std::size_t bytes) { access_range(p, bytes, false, CAPSTONE_PC); }
void __tsan_write_range(void* p, std::size_t bytes) { access_range(p, bytes, true, CAPSTONE_PC); }

CAPSTONE_ATOMICS(8, std::uint8_t)
CAPSTONE_ATOMICS(16, std::uint16_t)
CAPSTONE_ATOMICS(32, std::uint32_t)
CAPSTONE_ATOMICS(64, std::uint64_t)
void __tsan_atomic_thread_fence(int order) {
  __atomic_thread_fence(order);
  if (this_lane) capstone_emu::hooks::fence(*this_block, *this_lane);
}
void __tsan_atomic_signal_fence(int) {}

// What the candidate's calls of memcpy, memmove and memset become: the compiler instruments accesses, not
// calls.
void* capstone_emu_memcpy(void* to, const void* from, std::size_t bytes) {
  if (this_lane && bytes) {
    access_range(from, bytes, false, CAPSTONE_PC);
    access_range(to, bytes, true, CAPSTONE_PC - 1);  // another place than the load's
  }
  return std::memcpy(to, from, bytes);
}
void* capstone_emu_memmove(void* to, const void* from, std::size_t bytes) {
  if (this_lane && bytes) {
    access_range(from, bytes, false, CAPSTONE_PC);
    access_range(to, bytes, true, CAPSTONE_PC - 1);
  }
  return std::memmove(to, from, bytes);
}
void* capstone_emu_memset(void* to, int value, std::size_t bytes) {
  if (this_lane && bytes) access_range(to, bytes, true, CAPSTONE_PC);
  return std::memset(to, value, bytes);
}

void __sanitizer_cov_trace_pc() {
  if (!duties) return;
  memory_is_current();
  if (counting() && this_lane) block_executed(CAPSTONE_PC);
}

}  // extern "C"
