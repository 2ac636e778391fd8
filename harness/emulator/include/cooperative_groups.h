#pragma once
#pragma GCC system_header
// cooperative_groups: blocks, tiles, coalesced groups. Grids and clusters end as "not judgeable".
#include "capstone_emulator/synchronisation.h"

namespace cooperative_groups {

namespace detail {
inline unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
}  // namespace detail

class thread_block {
 public:
  static void sync(CAPSTONE_SITE) { __syncthreads(file, line); }
  static unsigned thread_rank() { return capstone_emu::thread_state.linear; }
  static unsigned size() { return detail::block_threads(); }
  static unsigned num_threads() { return detail::block_threads(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static bool is_valid() { return false; }
  static void sync(CAPSTONE_SITE) { capstone_emu::grid_barrier(file, line); }
  static unsigned long long size() { return num_blocks() * detail::block_threads(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() {
    return (1ull * blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  static unsigned long long thread_rank() {
    return block_rank() * detail::block_threads() + capstone_emu::thread_state.linear;
  }
};
inline grid_group this_grid() { return {}; }

/// Some lanes of one warp; ranks count the members in ascending lane order.
class coalesced_group {
 public:
  explicit coalesced_group(unsigned mask) : mask_(mask) {}
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(__builtin_popcount(mask_ & ((1u << capstone_emu::thread_state.lane) - 1)));
  }
  unsigned meta_group_rank() const { return 0; }
  unsigned meta_group_size() const { return 1; }
  void sync(CAPSTONE_SITE) const { __syncwarp(mask_, file, line); }
  template <class T>
  T shfl(T value, unsigned rank, CAPSTONE_SITE) const {
    return capstone_emu::shuffle(mask_, value, lane_of(rank % size()), file, line);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, CAPSTONE_SITE) const {
    const unsigned rank = thread_rank() + delta;
    return capstone_emu::shuffle(mask_, value, lane_of(rank < size() ? rank : thread_rank()), file, line);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, CAPSTONE_SITE) const {
    const unsigned rank = thread_rank();
    return capstone_emu::shuffle(mask_, value, lane_of(rank >= delta ? rank - delta : rank), file, line);
  }
  int any(int predicate, CAPSTONE_SITE) const { return __any_sync(mask_, predicate, file, line); }
  int all(int predicate, CAPSTONE_SITE) const { return __all_sync(mask_, predicate, file, line); }
  unsigned ballot(int predicate, CAPSTONE_SITE) const {
    const unsigned lanes = __ballot_sync(mask_, predicate, file, line);
    unsigned ranks = 0;
    for (unsigned rank = 0; rank < size(); ++rank) ranks |= (lanes >> lane_of(rank) & 1u) << rank;
    return ranks;
  }
  unsigned mask() const { return mask_; }

 private:
  int lane_of(unsigned rank) const {
    unsigned rest = mask_;
    while (rank--) rest &= rest - 1;
    return __builtin_ctz(rest);
  }
  unsigned mask_;
};
inline coalesced_group coalesced_threads(CAPSTONE_SITE) {
  return coalesced_group(capstone_emu::active_mask(file, line));
}

/// N consecutive threads of a block; N is a power of two up to 32.
template <unsigned N, class Parent = void>
class thread_block_tile {
  static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0, "on the CPU backend a tile has 1, 2, 4, 8, 16 or 32 threads");

 public:
  thread_block_tile() = default;
  template <class Other>
  thread_block_tile(const thread_block_tile<N, Other>&) {}
  static constexpr unsigned size() { return N; }
  static constexpr unsigned num_threads() { return N; }
  static unsigned thread_rank() { return capstone_emu::thread_state.linear & (N - 1); }
  static unsigned meta_group_rank() { return capstone_emu::thread_state.linear / N; }
  static unsigned meta_group_size() { return (detail::block_threads() + N - 1) / N; }
  static unsigned mask() { return kLanes << first_lane(); }
  static void sync(CAPSTONE_SITE) { __syncwarp(mask(), file, line); }
  template <class T>
  T shfl(T value, int rank, CAPSTONE_SITE) const { return __shfl_sync(mask(), value, rank, N, file, line); }
  template <class T>
  T shfl_down(T value, unsigned delta, CAPSTONE_SITE) const {
    return __shfl_down_sync(mask(), value, delta, N, file, line);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, CAPSTONE_SITE) const { return __shfl_up_sync(mask(), value, delta, N, file, line); }
  template <class T>
  T shfl_xor(T value, unsigned flip, CAPSTONE_SITE) const {
    return __shfl_xor_sync(mask(), value, static_cast<int>(flip), N, file, line);
  }
  int any(int predicate, CAPSTONE_SITE) const { return __any_sync(mask(), predicate, file, line); }
  int all(int predicate, CAPSTONE_SITE) const { return __all_sync(mask(), predicate, file, line); }
  unsigned ballot(int predicate, CAPSTONE_SITE) const {
    return __ballot_sync(mask(), predicate, file, line) >> first_lane() & kLanes;
  }
  template <class T>
  unsigned match_any(T value, CAPSTONE_SITE) const {
    return __match_any_sync(mask(), value, file, line) >> first_lane() & kLanes;
  }

 private:
  static constexpr unsigned kLanes = N == 32 ? ~0u : (1u << (N & 31)) - 1;
  static unsigned first_lane() { return capstone_emu::thread_state.lane & ~(N - 1); }
};
template <unsigned N, class Group>
inline thread_block_tile<N, Group> tiled_partition(const Group&) {
  return {};
}

template <class Group>
inline void sync(const Group& group, CAPSTONE_SITE) {
  group.sync(file, line);
}

// ---- reduce and scan ------------------------------------------------------------------------------------------------
template <class T = void>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T = void>
struct less {  // CUDA's name for the minimum
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T = void>
struct greater {  // and for the maximum
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T = void>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T = void>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T = void>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

template <class Group, class T, class Combine>
inline T reduce(const Group& group, T value, Combine combine, CAPSTONE_SITE) {
  return capstone_emu::warp_reduce(group.mask(), value, combine, file, line);
}
template <class Group, class T, class Combine = plus<T>>
inline T inclusive_scan(const Group& group, T value, Combine combine = {}, CAPSTONE_SITE) {
  for (unsigned delta = 1; delta < group.size(); delta *= 2) {
    const T other = group.shfl_up(value, delta, file, line);
    if (group.thread_rank() >= delta) value = combine(other, value);
  }
  return value;
}
template <class Group, class T, class Combine = plus<T>>
inline T exclusive_scan(const Group& group, T value, Combine combine = {}, CAPSTONE_SITE) {
  const T before = group.shfl_up(inclusive_scan(group, value, combine, file, line), 1, file, line);
  return group.thread_rank() == 0 ? T{} : before;
}

// ---- asynchronous copies --------------------------------------------------------------------------------------------
template <class Group, class T>
inline void memcpy_async(const Group& group, T* to, const T* from, std::size_t bytes) {
  constexpr std::size_t kStep = 4;
  auto* target = reinterpret_cast<char*>(to);
  auto* source = reinterpret_cast<const char*>(from);
  for (std::size_t i = group.thread_rank() * kStep; i < bytes; i += group.size() * kStep) {
    const std::size_t count = bytes - i < kStep ? bytes - i : kStep;
    capstone_emu::async_copy(target + i, source + i, static_cast<unsigned>(count), 0);
  }
  capstone_emu::async_commit();
}
template <class Group>
inline void wait(const Group& group, CAPSTONE_SITE) {
  capstone_emu::async_wait(0);
  group.sync(file, line);
}
template <unsigned kStages, class Group>
inline void wait_prior(const Group& group, CAPSTONE_SITE) {
  capstone_emu::async_wait(kStages);
  group.sync(file, line);
}

}  // namespace cooperative_groups
