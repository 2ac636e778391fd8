#pragma once
#pragma GCC system_header
// cooperative_groups: grids, clusters, blocks, tiles, coalesced groups; reductions and scans over them;
// copies.
#include "capstone_emulator/synchronisation.h"

namespace cooperative_groups {

namespace detail {
inline unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned lanes_below() { return (1u << capstone_emu::thread_state.lane) - 1; }
inline dim3 dim_of(const capstone_emu::Index3& i) { return dim3(i.x, i.y, i.z); }
inline unsigned rank_in(const capstone_emu::Index3& i, const capstone_emu::Index3& dim) {
  return (i.z * dim.y + i.y) * dim.x + i.x;
}
/// The first `width` lanes, moved up by `first`.
inline unsigned lane_range(unsigned first, unsigned width) { return (width >= 32 ? ~0u : (1u << width) - 1) << first; }
}  // namespace detail

class thread_block {
 public:
  static constexpr bool is_valid() { return true; }
  struct arrival_token {};
  static void sync(CAPSTONE_SITE) { __syncthreads(file, line); }
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token&&, CAPSTONE_SITE) { __syncthreads(file, line); }
  static unsigned thread_rank() { return capstone_emu::thread_state.linear; }
  static unsigned size() { return detail::block_threads(); }
  static unsigned num_threads() { return detail::block_threads(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }
/// What tiles larger than a warp exchange values through, on a GPU.
template <unsigned kMaxBlockSize = 1024>
struct block_tile_memory {};
template <unsigned kMaxBlockSize>
inline thread_block this_thread_block(block_tile_memory<kMaxBlockSize>&) {
  return {};
}

class grid_group {
 public:
  struct arrival_token {};
  static bool is_valid() { return capstone_emu::launched_cooperatively(); }
  static void sync(CAPSTONE_SITE) { capstone_emu::grid_barrier(file, line); }
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token&&, CAPSTONE_SITE) { capstone_emu::grid_barrier(file, line); }
  static unsigned long long size() { return num_blocks() * detail::block_threads(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static unsigned long long block_rank() {
    return (1ull * blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  static unsigned long long thread_rank() {
    return block_rank() * detail::block_threads() + capstone_emu::thread_state.linear;
  }
  static dim3 cluster_index() { return detail::dim_of(capstone_emu::cluster_view().index); }
  static dim3 dim_clusters() { return detail::dim_of(capstone_emu::cluster_view().grid); }
  static unsigned long long num_clusters() {
    const auto dim = capstone_emu::cluster_view().grid;
    return 1ull * dim.x * dim.y * dim.z;
  }
  static unsigned long long cluster_rank() {
    const auto view = capstone_emu::cluster_view();
    return detail::rank_in(view.index, view.grid);
  }
};
inline grid_group this_grid() { return {}; }

class cluster_group {
 public:
  struct arrival_token {};
  static void sync() {
    capstone_emu::cluster_arrive();
    capstone_emu::cluster_wait();
  }
  static arrival_token barrier_arrive() {
    capstone_emu::cluster_arrive();
    return {};
  }
  static void barrier_wait() { capstone_emu::cluster_wait(); }
  static void barrier_wait(arrival_token&&) { capstone_emu::cluster_wait(); }
  static unsigned num_blocks() {
    const auto dim = capstone_emu::cluster_view().dim;
    return dim.x * dim.y * dim.z;
  }
  static unsigned num_threads() { return num_blocks() * detail::block_threads(); }
  static unsigned size() { return num_threads(); }
  static unsigned block_rank() { return capstone_emu::thread_state.cluster_rank; }
  static unsigned thread_rank() { return block_rank() * detail::block_threads() + capstone_emu::thread_state.linear; }
  static dim3 block_index() { return detail::dim_of(capstone_emu::cluster_view().block); }
  static dim3 dim_blocks() { return detail::dim_of(capstone_emu::cluster_view().dim); }
  static dim3 dim_threads() {
    const dim3 blocks = dim_blocks();
    return dim3(blocks.x * blockDim.x, blocks.y * blockDim.y, blocks.z * blockDim.z);
  }
  template <class T>
  static T* map_shared_rank(T* address, unsigned rank) {
    return reinterpret_cast<T*>(capstone_emu::remote_shared_memory(rank, capstone_emu::shared_address(address)));
  }
  static unsigned query_shared_rank(const void* address) { return capstone_emu::rank_of_shared_memory(address); }
};
inline cluster_group this_cluster() { return {}; }

/// Some lanes of one warp; ranks count the members in ascending lane order.
class coalesced_group {
 public:
  explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
      : mask_(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return static_cast<unsigned>(__builtin_popcount(mask_ & detail::lanes_below())); }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }
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
  unsigned ballot(int predicate, CAPSTONE_SITE) const { return ranks_of(__ballot_sync(mask_, predicate, file, line)); }
  template <class T>
  unsigned match_any(T value, CAPSTONE_SITE) const {
    return ranks_of(__match_any_sync(mask_, value, file, line));
  }
  template <class T>
  unsigned match_all(T value, int& predicate, CAPSTONE_SITE) const {
    return ranks_of(__match_all_sync(mask_, value, &predicate, file, line));
  }
  unsigned mask() const { return mask_; }
  /// The lane of the member with this rank.
  int lane_of(unsigned rank) const {
    unsigned rest = mask_;
    while (rank--) rest &= rest - 1;
    return __builtin_ctz(rest);
  }

 private:
  unsigned ranks_of(unsigned lanes) const {
    unsigned ranks = 0;
    for (unsigned rank = 0; rank < size(); ++rank) ranks |= (lanes >> lane_of(rank) & 1u) << rank;
    return ranks;
  }
  unsigned mask_, meta_rank_, meta_size_;
};
inline coalesced_group coalesced_threads(CAPSTONE_SITE) {
  return coalesced_group(capstone_emu::active_mask(file, line));
}

/// N consecutive threads of a block; N is a power of two up to 1024. Above 32 there are no shuffles.
template <unsigned N, class Parent = void>
class thread_block_tile {
  static_assert(N >= 1 && N <= 1024 && (N & (N - 1)) == 0, "a tile has a power of two of threads, at most 1024");

 public:
  thread_block_tile() = default;
  template <class Other>
  thread_block_tile(const thread_block_tile<N, Other>&) {}
  static constexpr unsigned size() { return N; }
  static constexpr unsigned num_threads() { return N; }
  static unsigned thread_rank() { return capstone_emu::thread_state.linear & (N - 1); }
  static unsigned meta_group_rank() {
    if constexpr (kParent) return (capstone_emu::thread_state.linear & (kParent - 1)) / N;
    return capstone_emu::thread_state.linear / N;
  }
  static unsigned meta_group_size() { return ((kParent ? kParent : detail::block_threads()) + N - 1) / N; }
  static unsigned mask() {
    static_assert(N <= 32, "a tile of several warps has no lane mask");
    return kLanes << first_lane();
  }
  static void sync(CAPSTONE_SITE) {
    if constexpr (N <= 32)
      __syncwarp(mask(), file, line);
    else
      capstone_emu::named_barrier(capstone_emu::kTileBarriers + capstone_emu::thread_state.linear / N, N, file, line);
  }
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
  template <class T>
  unsigned match_all(T value, int& predicate, CAPSTONE_SITE) const {
    return __match_all_sync(mask(), value, &predicate, file, line) >> first_lane() & kLanes;
  }

 private:
  template <class T>
  struct Threads {
    static constexpr unsigned kCount = 0;
  };
  template <unsigned M, class P>
  struct Threads<thread_block_tile<M, P>> {
    static constexpr unsigned kCount = M;
  };
  static constexpr unsigned kParent = Threads<Parent>::kCount;  // 0: the block
  static constexpr unsigned kLanes = N >= 32 ? ~0u : (1u << (N & 31)) - 1;
  static unsigned first_lane() { return capstone_emu::thread_state.lane & ~(N - 1); }
};

inline thread_block_tile<1> this_thread() { return {}; }

/// Any group, chosen at run time.
class thread_group {
 public:
  thread_group(const thread_block&) : block_(true), group_(0) {}
  thread_group(const coalesced_group& group) : block_(false), group_(group) {}
  template <unsigned N, class Parent>
  thread_group(const thread_block_tile<N, Parent>& tile)
      : block_(false), group_(tile.mask(), tile.meta_group_rank(), tile.meta_group_size()) {}
  unsigned size() const { return block_ ? thread_block::size() : group_.size(); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return block_ ? thread_block::thread_rank() : group_.thread_rank(); }
  void sync(CAPSTONE_SITE) const {
    if (block_) thread_block::sync(file, line);
    else group_.sync(file, line);
  }
  bool is_block() const { return block_; }
  const coalesced_group& lanes() const { return group_; }

 private:
  bool block_;
  coalesced_group group_;
};

template <unsigned N, class Group>
inline thread_block_tile<N, Group> tiled_partition(const Group&) {
  return {};
}
namespace detail {
inline coalesced_group part_of(const coalesced_group& parent, unsigned size) {
  const unsigned first = parent.thread_rank() / size * size;
  unsigned mask = 0;
  for (unsigned rank = first; rank < first + size && rank < parent.size(); ++rank) mask |= 1u << parent.lane_of(rank);
  return coalesced_group(mask, first / size, (parent.size() + size - 1) / size);
}
}  // namespace detail
template <unsigned N>
inline coalesced_group tiled_partition(const coalesced_group& parent) {
  return detail::part_of(parent, N);
}
inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  if (!parent.is_block()) return detail::part_of(parent.lanes(), size);
  const unsigned first = capstone_emu::thread_state.lane / size * size;
  return coalesced_group(detail::lane_range(first, size), capstone_emu::thread_state.linear / size,
                         (detail::block_threads() + size - 1) / size);
}
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  return detail::part_of(parent, size);
}
/// The members whose label is the caller's.
template <class Group, class Label>
inline coalesced_group labeled_partition(const Group& group, Label label, CAPSTONE_SITE) {
  return coalesced_group(__match_any_sync(group.mask(), label, file, line));
}
template <class Group>
inline coalesced_group binary_partition(const Group& group, bool predicate, CAPSTONE_SITE) {
  const unsigned yes = __ballot_sync(group.mask(), predicate, file, line);
  return coalesced_group(predicate ? yes : group.mask() & ~yes, predicate ? 0 : 1, 2);
}

template <class Group>
inline void sync(const Group& group, CAPSTONE_SITE) {
  group.sync(file, line);
}
template <class Group>
inline unsigned thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
inline unsigned group_size(const Group& group) {
  return group.size();
}
template <class Group, class Function, class... Arguments>
inline void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
}
template <class Group, class Function>
inline auto invoke_one_broadcast(const Group& group, Function&& function, CAPSTONE_SITE) {
  decltype(function()) result{};
  if (group.thread_rank() == 0) result = function();
  return group.shfl(result, 0, file, line);
}

// ---- reduce and scan --------------------------------------------------------------------------------------
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

namespace detail {
/// All members' values in rank order, for groups of more than a warp.
template <class Group, class T, class Combine>
CAPSTONE_UNOBSERVED inline T reduce_through_memory(const Group& group, T value, Combine& combine, const char* file, int line) {
  static_assert(sizeof(T) <= capstone_emu::kScratchPerThread, "the value is too large for a reduction");
  char* scratch = capstone_emu::block_scratch();
  const unsigned first = capstone_emu::thread_state.linear - group.thread_rank();
  auto at = [&](unsigned i) { return reinterpret_cast<T*>(scratch + i * capstone_emu::kScratchPerThread); };
  *at(capstone_emu::thread_state.linear) = value;
  group.sync(file, line);
  T sum = *at(first);
  const unsigned last = first + group.size() < block_threads() ? first + group.size() : block_threads();
  for (unsigned i = first + 1; i < last; ++i) sum = combine(sum, *at(i));
  group.sync(file, line);
  return sum;
}
template <class Group>
constexpr bool spans_warps(const Group&) { return false; }
constexpr bool spans_warps(const thread_block&) { return true; }
template <unsigned N, class P>
constexpr bool spans_warps(const thread_block_tile<N, P>&) { return N > 32; }
}  // namespace detail

template <class Group, class T, class Combine>
inline std::decay_t<T> reduce(const Group& group, T&& value, Combine combine, CAPSTONE_SITE) {
  using Value = std::decay_t<T>;
  if constexpr (detail::spans_warps(Group()))
    return detail::reduce_through_memory(group, Value(value), combine, file, line);
  else
    return capstone_emu::warp_reduce(group.mask(), Value(value), combine, file, line);
}
template <class T, class Combine>
inline std::decay_t<T> reduce(const coalesced_group& group, T&& value, Combine combine, CAPSTONE_SITE) {
  return capstone_emu::warp_reduce(group.mask(), std::decay_t<T>(value), combine, file, line);
}
template <class Group, class Atomic, class T, class Combine>
inline void reduce_update_async(const Group& group, Atomic& target, T value, Combine combine, CAPSTONE_SITE) {
  const T sum = reduce(group, value, combine, file, line);
  if (group.thread_rank() == 0) {
    T before = target.load();
    while (!target.compare_exchange_weak(before, combine(before, sum))) {
    }
  }
}
template <class Group, class Atomic, class T, class Combine>
inline void reduce_store_async(const Group& group, Atomic& target, T value, Combine combine, CAPSTONE_SITE) {
  const T sum = reduce(group, value, combine, file, line);
  if (group.thread_rank() == 0) target.store(sum);
}

template <class Group, class T, class Combine>
inline T inclusive_scan(const Group& group, T value, Combine combine, CAPSTONE_SITE) {
  for (unsigned delta = 1; delta < group.size(); delta *= 2) {
    const T other = group.shfl_up(value, delta, file, line);
    if (group.thread_rank() >= delta) value = combine(other, value);
  }
  return value;
}
template <class Group, class T>
inline T inclusive_scan(const Group& group, T value, CAPSTONE_SITE) {
  return inclusive_scan(group, value, plus<T>(), file, line);
}
template <class Group, class T, class Combine>
inline T exclusive_scan(const Group& group, T value, Combine combine, CAPSTONE_SITE) {
  const T before = group.shfl_up(inclusive_scan(group, value, combine, file, line), 1, file, line);
  return group.thread_rank() == 0 ? T{} : before;
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value, CAPSTONE_SITE) {
  return exclusive_scan(group, value, plus<T>(), file, line);
}

// ---- asynchronous copies ----------------------------------------------------------------------------------
template <class Group, class T, class Size>
inline void memcpy_async(const Group& group, T* to, const T* from, const Size& size) {
  constexpr std::size_t kStep = 4;
  const std::size_t bytes = static_cast<std::size_t>(size);
  auto* target = reinterpret_cast<char*>(to);
  auto* source = reinterpret_cast<const char*>(from);
  for (std::size_t i = group.thread_rank() * kStep; i < bytes; i += group.size() * kStep) {
    const std::size_t count = bytes - i < kStep ? bytes - i : kStep;
    capstone_emu::async_copy(target + i, source + i, static_cast<unsigned>(count), 0);
  }
  capstone_emu::async_commit();
}
/// Both extents count elements; the shorter one is copied.
template <class Group, class T, class ToLayout, class FromLayout>
inline void memcpy_async(const Group& group, T* to, const ToLayout& to_extent, const T* from, const FromLayout& from_extent) {
  const std::size_t room = static_cast<std::size_t>(to_extent), given = static_cast<std::size_t>(from_extent);
  memcpy_async(group, to, from, (room < given ? room : given) * sizeof(T));
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
