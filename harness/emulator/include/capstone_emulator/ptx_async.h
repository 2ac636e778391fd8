#pragma once
#pragma GCC system_header
// mbarrier, bulk copies, clusters: the instructions of sm_90 around shared memory.
#include "ptx.h"

namespace capstone_emu::ptx {

inline std::uint64_t* mbarrier_at(char* address, const char* file, int line) {
  require_aligned(address, 8, "mbarrier", file, line);
  return reinterpret_cast<std::uint64_t*>(address);
}

/// Registers of 128 bits.
inline LaunchAnswer wide_of(const Register& from) { return {from.word, from.high}; }
template <class T>
inline LaunchAnswer wide_of(const Input<T>& from) {
  return __builtin_bit_cast(LaunchAnswer, from.value);
}
template <class T>
inline LaunchAnswer wide_of(const Output<T>& from) {
  return __builtin_bit_cast(LaunchAnswer, from.place);
}
inline void put_wide(Register& to, const LaunchAnswer& value) {
  to.word = value.low;
  to.high = value.high;
}
template <class T>
inline void put_wide(Output<T>& to, const LaunchAnswer& value) {
  static_assert(sizeof(T) == sizeof value, "an operand of 128 bits");
  std::memcpy(&to.place, &value, sizeof value);
}
inline LaunchAnswer load_wide(const char* from, const char* file, int line) {
  require_aligned(from, sizeof(LaunchAnswer), "ld.b128", file, line);
  LaunchAnswer value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// One lane of the mask, the same one each time.
inline bool elect(std::uint32_t mask, const char* file, int line) {
  __syncwarp(mask, file, line);
  return thread_state.lane == static_cast<unsigned>(__builtin_ctz(mask));
}

/// The place in block `rank` of the cluster that corresponds to `address` here.
inline std::uint32_t map_shared_address(std::uint32_t address, std::uint32_t rank) {
  return (address & kSharedOffsetMask) | rank << kClusterRankShift;
}
inline std::uint32_t cluster_rank_of(std::uint32_t address) { return address >> kClusterRankShift; }

template <class... Coordinates>
inline void tensor_to_shared(char* to, const char* map, std::uint64_t* barrier, unsigned multicast, const char* file, int line,
                             Coordinates... coordinates) {
  const std::int32_t at[] = {coordinates...};
  tensor_copy_to_shared(to, map, barrier, sizeof...(Coordinates), at, multicast, file, line);
}
template <class... Coordinates>
inline void tensor_to_global(const char* map, const char* from, Reduction reduction, const char* file, int line,
                             Coordinates... coordinates) {
  const std::int32_t at[] = {coordinates...};
  tensor_copy_to_global(map, from, sizeof...(Coordinates), at, reduction, file, line);
}

}  // namespace capstone_emu::ptx
