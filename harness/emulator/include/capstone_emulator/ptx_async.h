#pragma once
#pragma GCC system_header
// mbarrier, bulk copies, clusters: the instructions of sm_90 around shared memory.
#include "ptx.h"

namespace capstone_emu::ptx {

inline std::uint64_t* mbarrier_at(char* address, const char* file, int line) {
  require_aligned(address, 8, "mbarrier", file, line);
  return reinterpret_cast<std::uint64_t*>(address);
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
