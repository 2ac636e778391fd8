#pragma once
#pragma GCC system_header
// What rewritten CUDA code and the runtime library share. Knows nothing of CUDA's own headers.
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "context_switch.h"

/// The caller's place in the source as two default arguments.
#define CAPSTONE_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define CAPSTONE_TLS __attribute__((tls_model("initial-exec")))

namespace capstone_emu {

struct Index3 {
  unsigned x, y, z;
};

/// The running CUDA thread's state that user code reads without a call.
struct ThreadState {
  unsigned lane;                  ///< 0 … 31
  unsigned linear;                ///< index in the block
  char* shared_base;              ///< static shared arena of this block
  char* dynamic_shared;           ///< dynamic shared memory of this block
  const std::uint32_t* slot_epoch;  ///< per shared slot: the block it was last initialised for
  std::uint32_t epoch;            ///< number of the running block
  unsigned spin;                  ///< atomics and fences so far: now and then one lets others run
};
extern thread_local __constinit ThreadState thread_state CAPSTONE_TLS;

// ---- failures: they end the kernel, not the process -----------------------------------------------------------------
[[noreturn]] void undefined_behaviour(const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
[[noreturn]] void not_judgeable(const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
[[noreturn]] void trap(const char* file, int line, const char* what);

// ---- what headers tell the hooks; nothing in the other flavours -----------------------------------------------------
#if defined(__SANITIZE_THREAD__) || CAPSTONE_EMULATOR_HOOKS
#define CAPSTONE_UNOBSERVED __attribute__((no_sanitize("thread")))
/// Synchronisation through an object in memory: what threads did before they released happened before an acquire returns.
void release_through(const void* object);
void acquire_through(const void* object);
/// Operations of the calling lane inside a warp-wide instruction.
void note_flops(std::uint64_t count);
/// Accesses of 16 bytes that a collective makes for the calling lane.
extern "C" void __tsan_read16(void* address);
extern "C" void __tsan_write16(void* address);
inline __attribute__((always_inline)) void note_read16(const void* address) { __tsan_read16(const_cast<void*>(address)); }
inline __attribute__((always_inline)) void note_write16(void* address) { __tsan_write16(address); }
#else
#define CAPSTONE_UNOBSERVED
inline void release_through(const void*) {}
inline void acquire_through(const void*) {}
inline void note_flops(std::uint64_t) {}
inline void note_read16(const void*) {}
inline void note_write16(void*) {}
#endif

// ---- shared memory --------------------------------------------------------------------------------------------------
struct SharedSlot {
  std::uint32_t id, offset, size;
  const char* name;
};
SharedSlot register_shared_slot(std::size_t size, std::size_t alignment, const char* name);
/// Fills the slot with NaN bytes and draws its red zones: the first touch in each block.
void begin_shared_slot(const SharedSlot& slot);

template <class Tag>
struct SharedSlotOf {
  static SharedSlot slot;
};
template <class Tag>
SharedSlot SharedSlotOf<Tag>::slot = register_shared_slot(sizeof(Tag), alignof(Tag), Tag::capstone_name());

/// The running block's instance of one `__shared__` declaration.
template <class Tag>
CAPSTONE_UNOBSERVED inline Tag& shared() {
  const SharedSlot& slot = SharedSlotOf<Tag>::slot;
  if (__builtin_expect(thread_state.slot_epoch[slot.id] != thread_state.epoch, 0)) begin_shared_slot(slot);
  return *reinterpret_cast<Tag*>(thread_state.shared_base + slot.offset);
}
inline void* dynamic_shared() { return thread_state.dynamic_shared; }

/// A pointer's 32-bit address in the shared window, and back.
inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(static_cast<const char*>(pointer) - thread_state.shared_base);
}
inline char* from_shared_address(std::uint64_t address) { return thread_state.shared_base + (address & 0xffffffffu); }

// ---- barriers -------------------------------------------------------------------------------------------------------
enum class BarrierKind : int { kSync, kCount, kAnd, kOr };
/// Arrives at the block's barrier. Returns the stack to continue on, or null when this thread goes on at once.
void* arrive_at_barrier(BarrierKind kind, int predicate, const char* file, int line, void*** save);
int barrier_result(BarrierKind kind);

static inline __attribute__((always_inline)) void block_barrier(const char* file, int line) {
  void** save;
  if (void* to = arrive_at_barrier(BarrierKind::kSync, 0, file, line, &save)) switch_stack(save, to);
}
static inline __attribute__((always_inline)) int block_barrier(BarrierKind kind, int predicate, const char* file,
                                                               int line) {
  void** save;
  if (void* to = arrive_at_barrier(kind, predicate, file, line, &save)) switch_stack(save, to);
  return barrier_result(kind);
}
[[noreturn]] void grid_barrier(const char* file, int line);

// ---- warp collectives: lanes post their operands, the last one computes for all -------------------------------------
enum class WarpKind : int { kSync, kShuffle, kBallot, kAny, kAll, kMatch, kCollective };
struct WarpOp {
  WarpKind kind;
  unsigned mask;               ///< lanes that take part
  const char* file;
  int line;
  const void* in = nullptr;    ///< shuffle, match, collective
  void* out = nullptr;         ///< shuffle
  unsigned size = 0;           ///< [B] of in and out
  int source = 0;              ///< shuffle: lane to read from
  int predicate = 0;           ///< votes
  unsigned result = 0;         ///< votes, match
  void (*compute)(WarpOp* const* lanes, unsigned mask) = nullptr;  ///< collective
};
void* arrive_at_collective(WarpOp& op, void*** save);
static inline __attribute__((always_inline)) void warp_collective(WarpOp& op) {
  void** save;
  if (void* to = arrive_at_collective(op, &save)) switch_stack(save, to);
}
/// The lanes that are converged here: waits until nobody else can join.
unsigned active_mask(const char* file, int line);

// ---- letting others run ---------------------------------------------------------------------------------------------
void yield_to_others();
/// Called by every atomic and fence, so that spin locks end.
inline void spin_hint() {
  if (__builtin_expect((++thread_state.spin & 63u) == 0, 0)) yield_to_others();
}
bool in_kernel();

// ---- asynchronous copies: done at issue or as late as legal, as the schedule says -----------------------------------
void async_copy(void* to, const void* from, unsigned bytes, unsigned zero_filled);
void async_commit();
void async_wait(unsigned still_pending);

// ---- launches -------------------------------------------------------------------------------------------------------
struct LaunchConfig {
  const char* kernel;
  const char* file;
  int line;
  Index3 grid, block;
  std::size_t dynamic_shared;
  bool cooperative;
};
/// Runs the whole grid before it returns; failures are left in the runtime's error state.
void run_grid(const LaunchConfig& config, void (*body)(void*), void* arguments);

template <class Body, class... Arguments>
void launch(const LaunchConfig& config, Body body, Arguments&&... arguments) {
  struct Frame {
    Body& body;
    std::tuple<std::decay_t<Arguments>...> values;
  } frame{body, {std::forward<Arguments>(arguments)...}};
  run_grid(
      config,
      [](void* raw) CAPSTONE_UNOBSERVED {
        Frame& call = *static_cast<Frame*>(raw);
        std::apply(call.body, call.values);
      },
      &frame);
}

// ---- device memory --------------------------------------------------------------------------------------------------
/// Memory as a GPU hands it out: aligned to 256 bytes, and not zero: NaN bytes make a forgotten initialisation visible.
/// Null when there is none left.
void* allocate_device_memory(std::size_t bytes);
/// @return false when it was not given out by allocate_device_memory(), or was released before.
bool release_device_memory(void* pointer);
/// The host gave values to memory, of a device or not.
void memory_written(const void* begin, std::size_t bytes);

// ---- state behind the runtime API (see runtime/cuda_api.cpp) --------------------------------------------------------
/// The last error, as a cudaError_t.
int& last_error();
/// Most dynamic shared memory a launch may ask for, in bytes; cudaFuncSetAttribute raises it.
std::size_t& dynamic_shared_limit();
/// Shared memory a block of this architecture can have at all, in bytes.
std::size_t shared_memory_capacity();
/// __CUDA_ARCH__ that the candidate was built for, for example 900.
int emulated_arch();

}  // namespace capstone_emu
