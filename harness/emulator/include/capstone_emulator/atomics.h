#pragma once
#pragma GCC system_header
// Atomic functions. Relaxed, as CUDA's are; each is a point where another thread may run.
#include <cstring>

#include "core.h"

namespace capstone_emu {

template <class T>
struct TypeOf {
  using Type = T;
};
/// Keeps a parameter out of template argument deduction: atomicAdd(&float_value, 1).
template <class T>
using Same = typename TypeOf<T>::Type;

template <class T>
using AtomicWord =
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

/// The first read of an update, which is one operation for the hooks.
template <class Word>
CAPSTONE_UNOBSERVED inline Word peek(const Word* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/// *address = update(*address) as one step; returns the old value.
template <class T, class Update>
inline T atomic_update(T* address, Update update) {
  spin_hint();
  using Word = AtomicWord<T>;
  static_assert(sizeof(Word) == sizeof(T), "atomics work on 2, 4 or 8 bytes");
  Word* word = reinterpret_cast<Word*>(address);
  Word before = peek(word), after;
  T old;
  do {
    std::memcpy(&old, &before, sizeof old);
    const T updated = update(old);
    std::memcpy(&after, &updated, sizeof after);
  } while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

/// The same for 16 bytes, under a lock: few processors do it in one instruction.
template <class T, class Update>
inline T atomic_update_wide(T* address, Update update) {
  static_assert(sizeof(T) == 16, "wide atomics work on 16 bytes");
  spin_hint();
  static int lock = 0;
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
  }
  const T old = *address;
  *address = update(old);
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  return old;
}

}  // namespace capstone_emu

template <class T>
inline T atomicAdd(T* address, capstone_emu::Same<T> value) {
  if constexpr (std::is_integral_v<T>) {
    capstone_emu::spin_hint();
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
  } else if constexpr (std::is_class_v<T> && (sizeof(T) == 8 || sizeof(T) == 16)) {  // float2, float4: each on its own
    T old;
    old.x = atomicAdd(&address->x, value.x);
    old.y = atomicAdd(&address->y, value.y);
    if constexpr (sizeof(T) == 16) {
      old.z = atomicAdd(&address->z, value.z);
      old.w = atomicAdd(&address->w, value.w);
    }
    return old;
  } else {
    return capstone_emu::atomic_update(address, [value](T old) { return static_cast<T>(old + value); });
  }
}
template <class T>
inline T atomicSub(T* address, capstone_emu::Same<T> value) {
  if constexpr (std::is_integral_v<T>) {
    capstone_emu::spin_hint();
    return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
  } else {
    return capstone_emu::atomic_update(address, [value](T old) { return static_cast<T>(old - value); });
  }
}
template <class T>
inline T atomicMax(T* address, capstone_emu::Same<T> value) {
  return capstone_emu::atomic_update(address, [value](T old) { return old < value ? value : old; });
}
template <class T>
inline T atomicMin(T* address, capstone_emu::Same<T> value) {
  return capstone_emu::atomic_update(address, [value](T old) { return value < old ? value : old; });
}
template <class T>
inline T atomicAnd(T* address, capstone_emu::Same<T> value) {
  capstone_emu::spin_hint();
  return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicOr(T* address, capstone_emu::Same<T> value) {
  capstone_emu::spin_hint();
  return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicXor(T* address, capstone_emu::Same<T> value) {
  capstone_emu::spin_hint();
  return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicExch(T* address, capstone_emu::Same<T> value) {
  if constexpr (sizeof(T) == 16) return capstone_emu::atomic_update_wide(address, [value](T) { return value; });
  capstone_emu::spin_hint();
  T old;
  __atomic_exchange(address, &value, &old, __ATOMIC_RELAXED);
  return old;
}
template <class T>
inline T atomicCAS(T* address, capstone_emu::Same<T> expected, capstone_emu::Same<T> value) {
  if constexpr (sizeof(T) == 16)
    return capstone_emu::atomic_update_wide(
        address, [&](T old) { return std::memcmp(&old, &expected, sizeof old) == 0 ? value : old; });
  capstone_emu::spin_hint();
  __atomic_compare_exchange(address, &expected, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return capstone_emu::atomic_update(address, [limit](unsigned old) { return old >= limit ? 0u : old + 1; });
}
inline unsigned atomicDec(unsigned* address, unsigned limit) {
  return capstone_emu::atomic_update(address,
                                     [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}
#define CAPSTONE_SCOPED_ATOMIC(name)                                                                        \
  template <class T>                                                                                        \
  inline T name##_block(T* address, capstone_emu::Same<T> value) { return name(address, value); }           \
  template <class T>                                                                                        \
  inline T name##_system(T* address, capstone_emu::Same<T> value) { return name(address, value); }
CAPSTONE_SCOPED_ATOMIC(atomicAdd)
CAPSTONE_SCOPED_ATOMIC(atomicSub)
CAPSTONE_SCOPED_ATOMIC(atomicMin)
CAPSTONE_SCOPED_ATOMIC(atomicMax)
CAPSTONE_SCOPED_ATOMIC(atomicAnd)
CAPSTONE_SCOPED_ATOMIC(atomicOr)
CAPSTONE_SCOPED_ATOMIC(atomicXor)
CAPSTONE_SCOPED_ATOMIC(atomicExch)
#undef CAPSTONE_SCOPED_ATOMIC
#define CAPSTONE_SCOPES(scope)                                                                                   \
  template <class T>                                                                                            \
  inline T atomicCAS##scope(T* address, capstone_emu::Same<T> expected, capstone_emu::Same<T> value) {           \
    return atomicCAS(address, expected, value);                                                                  \
  }                                                                                                             \
  inline unsigned atomicInc##scope(unsigned* address, unsigned limit) { return atomicInc(address, limit); }      \
  inline unsigned atomicDec##scope(unsigned* address, unsigned limit) { return atomicDec(address, limit); }
CAPSTONE_SCOPES(_block)
CAPSTONE_SCOPES(_system)
#undef CAPSTONE_SCOPES

// ---- __nv_atomic_…: nvcc's own atomic functions, with an order and a scope --------------------------------
#define __NV_ATOMIC_RELAXED __ATOMIC_RELAXED
#define __NV_ATOMIC_CONSUME __ATOMIC_CONSUME
#define __NV_ATOMIC_ACQUIRE __ATOMIC_ACQUIRE
#define __NV_ATOMIC_RELEASE __ATOMIC_RELEASE
#define __NV_ATOMIC_ACQ_REL __ATOMIC_ACQ_REL
#define __NV_ATOMIC_SEQ_CST __ATOMIC_SEQ_CST
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4

inline void __nv_atomic_thread_fence(int order, int = __NV_THREAD_SCOPE_SYSTEM) {
  capstone_emu::spin_hint();
  __atomic_thread_fence(order);
}
template <class T>
inline void __nv_atomic_load(T* address, T* result, int order, int = __NV_THREAD_SCOPE_SYSTEM) {
  capstone_emu::spin_hint();
  __atomic_load(address, result, order);
}
template <class T>
inline T __nv_atomic_load_n(T* address, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  std::remove_cv_t<T> value;
  __nv_atomic_load(const_cast<std::remove_cv_t<T>*>(address), &value, order, scope);
  return value;
}
template <class T>
inline void __nv_atomic_store(T* address, T* value, int order, int = __NV_THREAD_SCOPE_SYSTEM) {
  capstone_emu::spin_hint();
  __atomic_store(address, value, order);
}
template <class T>
inline void __nv_atomic_store_n(T* address, capstone_emu::Same<T> value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  __nv_atomic_store(address, &value, order, scope);
}
template <class T>
inline void __nv_atomic_exchange(T* address, T* value, T* result, int order, int = __NV_THREAD_SCOPE_SYSTEM) {
  capstone_emu::spin_hint();
  __atomic_exchange(address, value, result, order);
}
template <class T>
inline T __nv_atomic_exchange_n(T* address, capstone_emu::Same<T> value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  T old;
  __nv_atomic_exchange(address, &value, &old, order, scope);
  return old;
}
template <class T>
inline bool __nv_atomic_compare_exchange(T* address, T* expected, T* value, bool weak, int success, int failure,
                                         int = __NV_THREAD_SCOPE_SYSTEM) {
  capstone_emu::spin_hint();
  return __atomic_compare_exchange(address, expected, value, weak, success, failure);
}
template <class T>
inline bool __nv_atomic_compare_exchange_n(T* address, T* expected, capstone_emu::Same<T> value, bool weak, int success, int failure,
                                           int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return __nv_atomic_compare_exchange(address, expected, &value, weak, success, failure, scope);
}
/// The order is that of two fences around the relaxed operation.
#define CAPSTONE_NV_ATOMIC(name, operation)                                                                                 \
  template <class T>                                                                                                        \
  inline T __nv_atomic_fetch_##name(T* address, capstone_emu::Same<T> value, int order, int = __NV_THREAD_SCOPE_SYSTEM) {    \
    if (order == __NV_ATOMIC_RELEASE || order >= __NV_ATOMIC_ACQ_REL) __atomic_thread_fence(__ATOMIC_RELEASE);              \
    const T old = operation(address, value);                                                                                \
    if (order != __NV_ATOMIC_RELAXED && order != __NV_ATOMIC_RELEASE) __atomic_thread_fence(__ATOMIC_ACQUIRE);              \
    return old;                                                                                                             \
  }                                                                                                                         \
  template <class T>                                                                                                        \
  inline void __nv_atomic_##name(T* address, capstone_emu::Same<T> value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) { \
    __nv_atomic_fetch_##name(address, value, order, scope);                                                                 \
  }
CAPSTONE_NV_ATOMIC(add, atomicAdd)
CAPSTONE_NV_ATOMIC(sub, atomicSub)
CAPSTONE_NV_ATOMIC(and, atomicAnd)
CAPSTONE_NV_ATOMIC(or, atomicOr)
CAPSTONE_NV_ATOMIC(xor, atomicXor)
CAPSTONE_NV_ATOMIC(min, atomicMin)
CAPSTONE_NV_ATOMIC(max, atomicMax)
#undef CAPSTONE_NV_ATOMIC
