// Rung 4: a cluster of eight blocks holds a row in shared memory. One read, and only likely tokens are counted.
//
// Changed     the row is spread over the shared memory of eight multiprocessors, 64 KB each, which bulk copies
//             fill. Counters cover a window of probabilities at a time: first 2^-14 and above, where the
//             threshold usually is and where a row has room for at most 2^14 tokens; then 2^-19; then the
//             rest. Each block counts its share, sends what it counted to the first block, and that one looks
//             for the threshold. The few tokens of the last bin become a list; the block puts them in order
//             by counting who is ahead. Each warp owns neighbouring tokens, so the sums of the kept mass
//             follow in the order of the tokens.
// Why         rung 3 reads a row five times with one multiprocessor of 132 for each, half of them idle, and
//             its additions wait for one another: nearly all of 128256 tokens fall into a few dozen bins.
// Prediction  33 MB are 8 us; three passes over shared memory 1.2 us each; six meetings of the cluster 1 us
//             each: 18 us.
//
// Shapes      probs [b, v], top_p, top_k, u [b], token [b]; v up to 400 thousand.
// Launch      <<<8 b, 512>>> in clusters of 8.
// Resources   75 KB of shared memory at v = 128256, three blocks a multiprocessor; no workspace.
// Cost        one read of probs.
// Divides     v % 4 == 0 for bulk copies; otherwise loads of 4 bytes.
// Source      this project. Clusters and bulk copies need a GPU of compute capability 9.0.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace cg = cooperative_groups;

#ifndef CLUSTER
#define CLUSTER 8
#endif
constexpr int kCluster = CLUSTER, kThreads = 512, kWarps = kThreads / 32;
constexpr int kBins = 1024, kOwnBins = kBins / kThreads, kMostCandidates = 256;
constexpr unsigned kAllLanes = 0xffffffffu;
using Wide = unsigned long long;

/// A probability in units of 2^-31. The weights of a row sum to less than 2^32.
__device__ unsigned weight(float p) { return static_cast<unsigned>(p * 0x1p31f); }

struct Sums {
  unsigned mass, count;
};

/// Where to look for the threshold: among tokens with bits from `low` to `high`, both included. Of these, the
/// first ones with mass `need` or `most` in number are kept, whichever are fewer.
struct Search {
  unsigned low, high, need, most;
  unsigned count;  // of the tokens there, once they are counted
  bool found;      // the threshold lies there
};
__device__ unsigned bits_of_power(int exponent) { return static_cast<unsigned>(127 + exponent) << 23; }
/// The windows: 2^-14 and above, down to 2^-19, down to 2^-31, the least probability with a weight.
__device__ void set_window(Search& search, int window) {
  search.low = bits_of_power(window == 0 ? -14 : window == 1 ? -19 : -31);
  search.high = (window == 0 ? bits_of_power(2) : window == 1 ? bits_of_power(-14) : bits_of_power(-19)) - 1;
}
/// How many of the lower bits a bin leaves open.
__device__ int shift_of(const Search& search) {
  const int bits = 32 - __clz(static_cast<int>(search.high - search.low));
  return bits > 10 ? bits - 10 : 0;
}

/// The last token that is kept: by probability, then by index.
struct Last {
  unsigned bits, index;
};

struct Shared {
  unsigned mass[kBins], count[kBins];   // of the cluster in the first block, of the block in the others
  Wide candidates[kMostCandidates];     // in the first block: bits above, the index upside down below
  unsigned candidate_count, total;      // in the first block
  Search search;
  Last last;
  unsigned block_mass[kCluster], warp_mass[kWarps];
  Wide arrivals[kWarps];                // mbarriers
};
constexpr int kHeader = (sizeof(Shared) + 15) / 16 * 16;

// ---- bulk copies ------------------------------------------------------------------------------------------
__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void expect_one_copy(Wide* at) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(at)) : "memory");
}
__device__ void copy_bulk(void* to, const void* from, unsigned bytes, Wide* at) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(at))
               : "memory");
}
__device__ void wait_for(Wide* at) {
  asm volatile(
      "{\n"
      ".reg .pred there;\n"
      "WAITING:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], 0;\n"
      "@there bra.uni THERE;\n"
      "bra.uni WAITING;\n"
      "THERE:\n"
      "}\n" ::"r"(shared_address(at))
      : "memory");
}

/// A warp's part of the row: neighbouring tokens, padded with zeros to whole vectors.
struct Slice {
  float* at;
  unsigned first;  // token
  int length, padded;

  template <class F>
  __device__ void each(F f) const {
    for (int i = threadIdx.x % 32 * 4; i < padded; i += 128) {
      const float4 p = *reinterpret_cast<const float4*>(at + i);
      f(p.x, first + i), f(p.y, first + i + 1), f(p.z, first + i + 2), f(p.w, first + i + 3);
    }
  }
};

__device__ void fill(const Slice& slice, const float* from, bool bulk, Wide* arrival) {
  const int lane = threadIdx.x % 32;
  if (bulk && slice.length > 0) {  // whole vectors, since v and the slices are
    if (lane == 0) {
      expect_one_copy(arrival);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      copy_bulk(slice.at, from, static_cast<unsigned>(slice.length) * 4, arrival);
    }
    __syncwarp();  // the barrier is ready
    return;
  }
  for (int i = lane; i < slice.padded; i += 32) slice.at[i] = i < slice.length ? from[i] : 0.0f;
  __syncwarp();  // what other lanes wrote
}

/// Counts the tokens of the slice that the search covers.
__device__ void count(Shared& s, const Slice& slice, const Search& search) {
  const unsigned span = search.high - search.low, shift = static_cast<unsigned>(shift_of(search));
  slice.each([&](float p, unsigned) {
    const unsigned above = __float_as_uint(p) - search.low;
    if (above > span) return;
    atomicAdd(&s.mass[above >> shift], weight(p));
    atomicAdd(&s.count[above >> shift], 1u);
  });
}

/// In the first block: goes down the bins until there is enough, and makes the next search.
__device__ void find_bin(Shared& s) {
  __shared__ Sums of_warp[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, top = kBins - 1 - static_cast<int>(threadIdx.x) * kOwnBins;
  const Search search = s.search;
  Sums own{0, 0};
#pragma unroll
  for (int b = 0; b < kOwnBins; ++b) own.mass += s.mass[top - b], own.count += s.count[top - b];
  Sums inclusive = own;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned mass = __shfl_up_sync(kAllLanes, inclusive.mass, offset), count = __shfl_up_sync(kAllLanes, inclusive.count, offset);
    if (lane >= offset) inclusive.mass += mass, inclusive.count += count;
  }
  if (lane == 31) of_warp[warp] = inclusive;
  __syncthreads();  // the sums of all warps; all have read the search
  Sums above{inclusive.mass - own.mass, inclusive.count - own.count};
#pragma unroll
  for (int w = 0; w < kWarps; ++w)
    if (w < warp) above.mass += of_warp[w].mass, above.count += of_warp[w].count;
  const auto enough = [&](const Sums& x) { return x.mass >= search.need || x.count >= search.most; };
  const Sums below{above.mass + own.mass, above.count + own.count};
  if (!enough(above) && enough(below)) {
    int bin = top;
    while (!enough({above.mass + s.mass[bin], above.count + s.count[bin]}))
      above.mass += s.mass[bin], above.count += s.count[bin], --bin;
    const int shift = shift_of(search);
    const unsigned low = search.low + (static_cast<unsigned>(bin) << shift);
    s.search = {low, min(search.high, low + ((1u << shift) - 1)), search.need - above.mass, search.most - above.count, s.count[bin], true};
  } else if (threadIdx.x == kThreads - 1 && !enough(below)) {
    s.search.need -= below.mass, s.search.most -= below.count, s.search.found = false;
  }
  __syncthreads();  // the next search is there
}

/// In the first block: the list has all tokens of the last bin; a thread has one and counts those ahead of it.
__device__ void find_last(Shared& s) {
  const Search search = s.search;
  const unsigned n = s.candidate_count;
  if (threadIdx.x >= n) return;
  const auto mass_of = [](Wide candidate) { return weight(__uint_as_float(static_cast<unsigned>(candidate >> 32))); };
  const Wide own = s.candidates[threadIdx.x];
  Sums ahead{0, 0};
  for (unsigned i = 0; i < n; ++i)
    if (s.candidates[i] > own) ahead.mass += mass_of(s.candidates[i]), ++ahead.count;
  const Sums with{ahead.mass + mass_of(own), ahead.count + 1};
  if (ahead.mass < search.need && ahead.count < search.most && (with.mass >= search.need || with.count >= search.most))
    s.last = {static_cast<unsigned>(own >> 32), ~static_cast<unsigned>(own)};
}

/// The leader's value of a variable of `Shared` goes to all blocks.
template <class T>
__device__ void spread(cg::cluster_group& cluster, T& what) {
  __syncthreads();  // the value is there
  if (cluster.block_rank() == 0 && threadIdx.x > 0 && threadIdx.x < kCluster) *cluster.map_shared_rank(&what, threadIdx.x) = what;
  cluster.sync();  // all blocks have it
}

/// Adds up weights in the order of the tokens and calls found(index) where the sum first exceeds the target.
template <class Weight, class Target, class Found>
__device__ void locate(cg::cluster_group& cluster, Shared& s, const Slice& slice, Weight weight_of, Target target_of, Found found) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned mass = 0;
  slice.each([&](float p, unsigned index) { mass += weight_of(p, index); });
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) mass += __shfl_xor_sync(kAllLanes, mass, offset);
  if (lane == 0) s.warp_mass[warp] = mass;
  __syncthreads();  // the sums of all warps
  unsigned block = 0, before = 0, all = 0;
  for (int w = 0; w < kWarps; ++w) block += s.warp_mass[w];
  if (threadIdx.x < kCluster) cluster.map_shared_rank(&s, threadIdx.x)->block_mass[cluster.block_rank()] = block;
  cluster.sync();  // the sums of all blocks
  for (unsigned r = 0; r < kCluster; ++r) {
    if (r < cluster.block_rank()) before += s.block_mass[r];
    all += s.block_mass[r];
  }
  const unsigned target = target_of(all);
  for (int w = 0; w < warp; ++w) before += s.warp_mass[w];
  if (target < before || target - before >= mass) return;  // another warp has it
  for (int base = 0; base < slice.padded; base += 128) {
    const int i = base + lane * 4;
    const float4 p = i < slice.padded ? *reinterpret_cast<const float4*>(slice.at + i) : float4{};
    const unsigned index = slice.first + i;
    const unsigned own[4] = {weight_of(p.x, index), weight_of(p.y, index + 1), weight_of(p.z, index + 2), weight_of(p.w, index + 3)};
    const unsigned sum = own[0] + own[1] + own[2] + own[3];
    unsigned inclusive = sum;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const unsigned below = __shfl_up_sync(kAllLanes, inclusive, offset);
      if (lane >= offset) inclusive += below;
    }
    unsigned start = before + inclusive - sum;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (target >= start && target - start < own[e]) found(index + e);
      start += own[e];
    }
    before += __shfl_sync(kAllLanes, inclusive, 31);
  }
}

/// Windows and finer bins until at most kMostCandidates tokens are left, or only tokens of one probability.
__device__ Search search_bins(cg::cluster_group& cluster, Shared& s, const Slice& slice) {
  Shared* first = cluster.map_shared_rank(&s, 0);
  const bool leader = cluster.block_rank() == 0;
  for (int window = 0;;) {
    count(s, slice, s.search);
    __syncthreads();  // the block has counted
    for (int b = threadIdx.x; !leader && b < kBins; b += kThreads)
      if (s.count[b] > 0) atomicAdd(&first->mass[b], s.mass[b]), atomicAdd(&first->count[b], s.count[b]);
    cluster.sync();  // the first block has the counts of all
    if (leader) {
      find_bin(s);
      if (threadIdx.x == 0 && !s.search.found) set_window(s.search, ++window);
    }
    spread(cluster, s.search);
    const Search search = s.search;
    if (search.found && (search.count <= kMostCandidates || search.low == search.high)) return search;
    for (int b = threadIdx.x; b < kBins; b += kThreads) s.mass[b] = s.count[b] = 0;
    cluster.sync();  // the counters of all are clear
  }
}

__device__ Last threshold(cg::cluster_group& cluster, Shared& s, const Slice& slice) {
  const Search search = search_bins(cluster, s, slice);
  if (search.count > kMostCandidates) {  // equal ones: as many as are needed, the first in the row
    const unsigned own = weight(__uint_as_float(search.low)), equal = min((search.need + own - 1) / own, search.most);
    const auto is_equal = [&](float p, unsigned) { return __float_as_uint(p) == search.low ? 1u : 0u; };
    locate(cluster, s, slice, is_equal, [&](unsigned) { return equal - 1; }, [&](unsigned index) {
      for (int r = 0; r < kCluster; ++r) cluster.map_shared_rank(&s, r)->last = {search.low, index};
    });
    cluster.sync();  // all blocks have it
    return s.last;
  }
  Shared* first = cluster.map_shared_rank(&s, 0);
  slice.each([&](float p, unsigned index) {
    if (__float_as_uint(p) - search.low <= search.high - search.low)
      first->candidates[atomicAdd(&first->candidate_count, 1u)] = Wide{__float_as_uint(p)} << 32 | ~index;
  });
  cluster.sync();  // the list is complete
  if (cluster.block_rank() == 0) find_last(s);
  spread(cluster, s.last);
  return s.last;
}

__global__ void __launch_bounds__(kThreads)
    sample(const float* __restrict__ probs, const float* __restrict__ top_p, const int* __restrict__ top_k,
           const float* __restrict__ u, int* __restrict__ token, int64_t v, int slice_size) {
  extern __shared__ uint4 memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  cg::cluster_group cluster = cg::this_cluster();
  const int warp = threadIdx.x / 32;
  const int64_t row = blockIdx.x / kCluster, first = (int64_t{cluster.block_rank()} * kWarps + warp) * slice_size;
  const int64_t left = v - first < 0 ? 0 : v - first;
  const int length = left < slice_size ? static_cast<int>(left) : slice_size;
  const Slice slice{reinterpret_cast<float*>(memory) + kHeader / 4 + warp * slice_size, static_cast<unsigned>(first), length, (length + 3) / 4 * 4};

  fill(slice, probs + row * v + first, v % 4 == 0, &s.arrivals[warp]);
  for (int b = threadIdx.x; b < kBins; b += kThreads) s.mass[b] = s.count[b] = 0;
  if (threadIdx.x == 0) {
    s.candidate_count = s.total = 0;
    s.search.found = false;
    set_window(s.search, 0);
  }
  cluster.sync();  // the counters of all are clear
  if (v % 4 == 0 && length > 0) wait_for(&s.arrivals[warp]);
  unsigned mass = 0;
  slice.each([&](float p, unsigned) { mass += weight(p); });
  for (int offset = 16; offset > 0; offset /= 2) mass += __shfl_xor_sync(kAllLanes, mass, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(&cluster.map_shared_rank(&s, 0)->total, mass);
  cluster.sync();  // the first block has the mass of the row
  if (threadIdx.x == 0) {
    const auto part = static_cast<unsigned>(top_p[row] * 0x1p24f);
    s.search.need = max(1u, static_cast<unsigned>((Wide{part} * s.total + 0xffffff) >> 24));  // of use in the first block
    s.search.most = static_cast<unsigned>(top_k[row]);
  }
  const Last last = threshold(cluster, s, slice);
  const auto kept = [&](float p, unsigned index) {
    const unsigned bits = __float_as_uint(p);
    return bits > last.bits || (bits == last.bits && index <= last.index) ? weight(p) : 0;
  };
  const auto target = [&](unsigned all) { return static_cast<unsigned>((Wide{static_cast<unsigned>(u[row] * 0x1p24f)} * all) >> 24); };
  locate(cluster, s, slice, kept, target, [&](unsigned index) { token[row] = static_cast<int>(index); });
}

extern "C" void launch(const float* probs /*[b,v]*/, const float* top_p /*[b]*/, const int32_t* top_k /*[b]*/,
                       const float* u /*[b]*/, int32_t* token /*[b]*/, int64_t b, int64_t v,
                       void* /*workspace*/, cudaStream_t stream) {
  constexpr int64_t kParts = kCluster * kWarps;
  const auto slice_size = static_cast<int>(((v + kParts - 1) / kParts + 3) / 4 * 4);
  const int bytes = kHeader + kWarps * slice_size * 4;
  cudaFuncSetAttribute(sample, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (kCluster > 8) cudaFuncSetAttribute(sample, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(b * kCluster));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.stream = stream;
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = kCluster;
  attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
  config.attrs = attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, sample, probs, top_p, top_k, u, token, v, slice_size);
}
