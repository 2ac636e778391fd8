#pragma once
#pragma GCC system_header
// Atomic functions. Relaxed, as CUDA's are; each is a point where another thread may be let in.
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

/// *address = update(*address) as one step; returns the old value.
template <class T, class Update>
inline T atomic_update(T* address, Update update) {
  spin_hint();
  using Word = AtomicWord<T>;
  static_assert(sizeof(Word) == sizeof(T), "atomics work on 2, 4 or 8 bytes");
  Word* word = reinterpret_cast<Word*>(address);
  Word before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
  T old;
  do {
    std::memcpy(&old, &before, sizeof old);
    const T updated = update(old);
    std::memcpy(&after, &updated, sizeof after);
  } while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
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
  return capstone_emu::atomic_update(address, [value](T old) { return static_cast<T>(old - value); });
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
  return capstone_emu::atomic_update(address, [value](T old) { return old & value; });
}
template <class T>
inline T atomicOr(T* address, capstone_emu::Same<T> value) {
  return capstone_emu::atomic_update(address, [value](T old) { return old | value; });
}
template <class T>
inline T atomicXor(T* address, capstone_emu::Same<T> value) {
  return capstone_emu::atomic_update(address, [value](T old) { return old ^ value; });
}
template <class T>
inline T atomicExch(T* address, capstone_emu::Same<T> value) {
  return capstone_emu::atomic_update(address, [value](T) { return value; });
}
template <class T>
inline T atomicCAS(T* address, capstone_emu::Same<T> expected, capstone_emu::Same<T> value) {
  return capstone_emu::atomic_update(address, [expected, value](T old) { return old == expected ? value : old; });
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
