#pragma once
#pragma GCC system_header
// Barriers, fences and warp collectives.
#include <atomic>

#include "core.h"

// ---- block ------------------------------------------------------------------------------------------------
static inline __attribute__((always_inline)) void __syncthreads(CAPSTONE_SITE) {
  capstone_emu::block_barrier(file, line);
}
static inline int __syncthreads_count(int predicate, CAPSTONE_SITE) {
  return capstone_emu::block_barrier(capstone_emu::BarrierKind::kCount, predicate, file, line);
}
static inline int __syncthreads_and(int predicate, CAPSTONE_SITE) {
  return capstone_emu::block_barrier(capstone_emu::BarrierKind::kAnd, predicate, file, line);
}
static inline int __syncthreads_or(int predicate, CAPSTONE_SITE) {
  return capstone_emu::block_barrier(capstone_emu::BarrierKind::kOr, predicate, file, line);
}

// ---- memory -----------------------------------------------------------------------------------------------
static inline void __threadfence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  capstone_emu::spin_hint();
}
static inline void __threadfence_block() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  capstone_emu::spin_hint();
}
static inline void __threadfence_system() { __threadfence(); }
static inline void __threadfence_cluster() { __threadfence(); }
static inline void __nanosleep(unsigned) { capstone_emu::yield_to_others(); }

// ---- volatile shared memory without __syncwarp() ----------------------------------------------------------
// Code from before Volta: the lanes of a warp exchange values through it and count on running in lock step. The
// rewriter marks such accesses in whole programs. The lanes wait for each other before a load and around a store;
// where they are at different places, those at the first place in the source go on.
namespace capstone_emu {

/// @param place  where the access stands in the source: lanes at the lowest place go first
template <class T>
inline T& step_read(T& object, unsigned place, CAPSTONE_SITE) {
  if constexpr (std::is_volatile_v<T> && std::is_scalar_v<T>) lock_step(&object, place, Step::kRead, file, line);
  return object;
}

template <class T>
class StepWrite {
  using Value = std::remove_volatile_t<T>;

 public:
  StepWrite(T& object, unsigned place, const char* file, int line)
      : object_(object), place_(place), file_(file), line_(line) {}
  template <class U>
  Value operator=(const U& value) {
    return set(static_cast<Value>(value));
  }
#define CAPSTONE_STEP_UPDATE(op)                          \
  template <class U>                                      \
  Value operator op##=(const U& value) {                  \
    return set(static_cast<Value>(Value(object_) op value)); \
  }
  CAPSTONE_STEP_UPDATE(+)
  CAPSTONE_STEP_UPDATE(-)
  CAPSTONE_STEP_UPDATE(*)
  CAPSTONE_STEP_UPDATE(/)
  CAPSTONE_STEP_UPDATE(%)
  CAPSTONE_STEP_UPDATE(&)
  CAPSTONE_STEP_UPDATE(|)
  CAPSTONE_STEP_UPDATE(^)
  CAPSTONE_STEP_UPDATE(<<)
  CAPSTONE_STEP_UPDATE(>>)
#undef CAPSTONE_STEP_UPDATE

 private:
  Value set(Value value) {
    lock_step(&object_, place_, Step::kWrite, file_, line_);
    object_ = value;
    lock_step(&object_, place_ + 1, Step::kWritten, file_, line_);
    return value;
  }
  T& object_;
  unsigned place_;
  const char* file_;
  int line_;
};

/// The left side of an assignment.
template <class T>
inline decltype(auto) step_write(T& object, unsigned place, CAPSTONE_SITE) {
  if constexpr (std::is_volatile_v<T> && std::is_scalar_v<T>)
    return StepWrite<T>(object, place, file, line);
  else
    return (object);
}

}  // namespace capstone_emu

// ---- warp -------------------------------------------------------------------------------------------------
static inline unsigned __activemask(CAPSTONE_SITE) { return capstone_emu::active_mask(file, line); }
static inline void __syncwarp(unsigned mask = ~0u, CAPSTONE_SITE) {
  capstone_emu::WarpOp op{capstone_emu::WarpKind::kSync, mask, file, line};
  capstone_emu::warp_collective(op);
}

namespace capstone_emu {

/// May a value be moved as bytes? CUDA's pairs of narrow floats may, though they write out their copies.
template <class T>
inline constexpr bool kCopiedAsBytes = std::is_trivially_copyable_v<T>;

template <class T>
inline T shuffle(unsigned mask, T value, int source, const char* file, int line) {
  static_assert(kCopiedAsBytes<T>, "a shuffled value must be trivially copyable");
  T result = value;
  WarpOp op{WarpKind::kShuffle, mask, file, line};
  op.in = &value;
  op.out = &result;
  op.size = sizeof(T);
  op.source = source;
  warp_collective(op);
  return result;
}

inline unsigned vote(WarpKind kind, unsigned mask, int predicate, const char* file, int line) {
  WarpOp op{kind, mask, file, line};
  op.predicate = predicate;
  warp_collective(op);
  return op.result;
}

template <class T>
inline unsigned match(unsigned mask, T value, const char* file, int line) {
  WarpOp op{WarpKind::kMatch, mask, file, line};
  op.in = &value;
  op.size = sizeof(T);
  warp_collective(op);
  return op.result;
}

/// All lanes of `mask` get combine(… combine(v0, v1) …, vN) over the lanes in ascending order.
template <class T, class Combine>
inline T warp_reduce(unsigned mask, T value, Combine combine, const char* file, int line) {
  struct Lane {
    T value;
    Combine& combine;
  } lane{value, combine};
  WarpOp op{WarpKind::kCollective, mask, file, line};
  op.in = &lane;
  op.compute = [](WarpOp* const* lanes, unsigned members) {
    auto at = [&](int i) -> Lane& { return *static_cast<Lane*>(const_cast<void*>(lanes[i]->in)); };
    T sum = at(__builtin_ctz(members)).value;
    for (unsigned rest = members & (members - 1); rest; rest &= rest - 1) {
      Lane& next = at(__builtin_ctz(rest));
      sum = next.combine(sum, next.value);
    }
    for (unsigned rest = members; rest; rest &= rest - 1) at(__builtin_ctz(rest)).value = sum;
  };
  warp_collective(op);
  return lane.value;
}

}  // namespace capstone_emu

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, CAPSTONE_SITE) {
  const int lane = static_cast<int>(capstone_emu::thread_state.lane);
  return capstone_emu::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), file, line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CAPSTONE_SITE) {
  const int lane = static_cast<int>(capstone_emu::thread_state.lane), source = lane - static_cast<int>(delta);
  return capstone_emu::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source, file, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CAPSTONE_SITE) {
  const int lane = static_cast<int>(capstone_emu::thread_state.lane), source = lane + static_cast<int>(delta);
  return capstone_emu::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, file, line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, CAPSTONE_SITE) {
  const int lane = static_cast<int>(capstone_emu::thread_state.lane), source = lane ^ flip;
  return capstone_emu::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, file, line);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, CAPSTONE_SITE) {
  return capstone_emu::vote(capstone_emu::WarpKind::kBallot, mask, predicate, file, line);
}
static inline int __any_sync(unsigned mask, int predicate, CAPSTONE_SITE) {
  return static_cast<int>(capstone_emu::vote(capstone_emu::WarpKind::kAny, mask, predicate, file, line));
}
static inline int __all_sync(unsigned mask, int predicate, CAPSTONE_SITE) {
  return static_cast<int>(capstone_emu::vote(capstone_emu::WarpKind::kAll, mask, predicate, file, line));
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, CAPSTONE_SITE) {
  return capstone_emu::match(mask, value, file, line);
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* predicate, CAPSTONE_SITE) {
  const unsigned same = capstone_emu::match(mask, value, file, line);
  *predicate = capstone_emu::vote(capstone_emu::WarpKind::kAll, mask, same == mask, file, line) != 0;
  return *predicate ? mask : 0;
}
template <class T>
inline T __reduce_add_sync(unsigned mask, T value, CAPSTONE_SITE) {
  return capstone_emu::warp_reduce(mask, value, [](T a, T b) { return static_cast<T>(a + b); }, file, line);
}
template <class T>
inline T __reduce_min_sync(unsigned mask, T value, CAPSTONE_SITE) {
  return capstone_emu::warp_reduce(mask, value, [](T a, T b) { return b < a ? b : a; }, file, line);
}
template <class T>
inline T __reduce_max_sync(unsigned mask, T value, CAPSTONE_SITE) {
  return capstone_emu::warp_reduce(mask, value, [](T a, T b) { return a < b ? b : a; }, file, line);
}
static inline unsigned __reduce_and_sync(unsigned mask, unsigned value, CAPSTONE_SITE) {
  return capstone_emu::warp_reduce(mask, value, [](unsigned a, unsigned b) { return a & b; }, file, line);
}
static inline unsigned __reduce_or_sync(unsigned mask, unsigned value, CAPSTONE_SITE) {
  return capstone_emu::warp_reduce(mask, value, [](unsigned a, unsigned b) { return a | b; }, file, line);
}
static inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, CAPSTONE_SITE) {
  return capstone_emu::warp_reduce(mask, value, [](unsigned a, unsigned b) { return a ^ b; }, file, line);
}
