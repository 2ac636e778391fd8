// Rung 4: a cluster of eight blocks reads a row once and remembers the likely tokens.
//
// Changed     the row is spread over eight blocks. While it adds up the weights of its part, a warp keeps a
//             list of the tokens with a probability of 2^-14 or more: a row has room for 2^14 of them, and
//             mostly has a few hundred. The threshold nearly always lies among them. Then everything that
//             follows looks at the lists alone: counters for 1024 bins, which each block sends to the first
//             one; the few tokens of the last bin, put in order by counting who is ahead; the sums of the
//             kept mass, warp by warp in the order of the tokens. Where the lists do not suffice, the
//             counters go on with the tokens down to 2^-19 and then with the rest, and read the row again.
// Why         rung 3 reads a row five times with one multiprocessor, half of the GPU idle, and its additions
//             wait for one another: nearly all of 128256 tokens fall into a few dozen bins.
// Prediction  33 MB are 8 us at 4.3 TB/s; six meetings of the cluster 1 us each; the rest 3 us: 20 us with
//             the launch. Rows without limits read the row three times more, from L2: 15 us longer.
// Came        58.2 us on an H100, 564 GB/s, 1.73 times the rung before. 171 % of the native baseline.
//
// Shapes      probs [b, v], top_p, top_k, u [b], token [b].
// Launch      <<<8 b, 256>>> in clusters of 8.
// Resources   15 KB of shared memory, four blocks a multiprocessor; no workspace.
// Cost        one read of probs, in wide rows more.
// Divides     v % 4 == 0 for loads of 16 bytes; otherwise 4 bytes.
// Source      this project. Clusters need a GPU of compute capability 9.0.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace cg = cooperative_groups;

using Wide = unsigned long long;
constexpr int kCluster = 8, kThreads = 256, kWarps = kThreads / 32, kInFlight = 4;
constexpr int kBins = 1024, kOwnBins = kBins / kThreads, kMostCandidates = 256, kMostListed = 64;
constexpr unsigned kAllLanes = 0xffffffffu;

/// A probability in units of 2^-31. The weights of a row sum to less than 2^32.
__device__ unsigned weight(float p) { return static_cast<unsigned>(p * 0x1p31f); }
__device__ unsigned weight_of_bits(unsigned bits) { return weight(__uint_as_float(bits)); }

struct Sums {
  unsigned mass, count;
};

/// Where to look for the threshold: among tokens with bits from `low` to `high`, both included. Of these, the
/// first ones with mass `need` or `most` in number are kept, whichever are fewer.
struct Search {
  unsigned low, high, need, most;
  unsigned count;  // of the tokens there, once they are counted
  unsigned found;  // 1: the threshold lies there
};
constexpr unsigned kLikely = (127u - 14) << 23;  // the bits of 2^-14
/// The windows: 2^-14 and above, down to 2^-19, down to 2^-31, the least probability with a weight.
__device__ void set_window(Search& search, int window) {
  constexpr unsigned kLows[] = {kLikely, (127u - 19) << 23, (127u - 31) << 23}, kHighest = (127u + 2) << 23;
  search.low = window == 0 ? kLows[0] : window == 1 ? kLows[1] : kLows[2];
  search.high = (window == 0 ? kHighest : window == 1 ? kLows[0] : kLows[1]) - 1;
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

/// A token: the bits of its probability above, its index upside down below, so that a larger one comes first.
__device__ Wide token_of(unsigned bits, unsigned index) { return Wide{bits} << 32 | ~index; }
__device__ unsigned bits_of(Wide token) { return static_cast<unsigned>(token >> 32); }
__device__ unsigned index_of(Wide token) { return ~static_cast<unsigned>(token); }

struct Shared {
  unsigned mass[kBins], count[kBins];  // of the cluster in the first block, of the block in the others
  Wide candidates[kMostCandidates];    // in the first block
  unsigned candidate_count, total;     // in the first block
  Search search;
  Last last;
  unsigned block_mass[kCluster], warp_mass[kWarps];
  Wide listed[kWarps][kMostListed];  // the likely tokens of each warp, in any order
  unsigned listed_count[kWarps];
};

/// A warp's part of the row: neighbouring tokens.
struct Part {
  const float* row;
  unsigned first, end;
  bool vectors;
  const Wide* listed;
  unsigned listed_count;

  __device__ float4 load(unsigned i) const {
    float4 p{};  // zeros behind the end: they have no weight
    if (i >= end) return p;
    if (vectors) return __ldg(reinterpret_cast<const float4*>(row + i));
    p.x = row[i];
    if (i + 1 < end) p.y = row[i + 1];
    if (i + 2 < end) p.z = row[i + 2];
    if (i + 3 < end) p.w = row[i + 3];
    return p;
  }
  /// Calls f(bits, index) for all tokens.
  template <class F>
  __device__ void each(F f) const {
    for (unsigned i = first + threadIdx.x % 32 * 4; i < end; i += kInFlight * 128) {
      float4 p[kInFlight];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) p[k] = load(i + k * 128);
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        const unsigned index = i + k * 128;
        f(__float_as_uint(p[k].x), index), f(__float_as_uint(p[k].y), index + 1);
        f(__float_as_uint(p[k].z), index + 2), f(__float_as_uint(p[k].w), index + 3);
      }
    }
  }
  /// Whether the list has all tokens from `low` up.
  __device__ bool suffices(unsigned low) const { return low >= kLikely && listed_count <= kMostListed; }
  /// Calls f(bits, index) for all tokens from `low` up, and maybe for others.
  template <class F>
  __device__ void each_from(unsigned low, F f) const {
    if (!suffices(low)) return each(f);
    for (unsigned i = threadIdx.x % 32; i < listed_count; i += 32) f(bits_of(listed[i]), index_of(listed[i]));
  }
};

/// Lists the likely tokens of the part; returns the mass of all, the same in all lanes.
__device__ unsigned read_part(Shared& s, Part& part) {
  const int warp = threadIdx.x / 32;
  unsigned mass = 0;
  part.each([&](unsigned bits, unsigned index) {
    mass += weight_of_bits(bits);
    if (bits < kLikely) return;
    const unsigned place = atomicAdd(&s.listed_count[warp], 1u);
    if (place < kMostListed) s.listed[warp][place] = token_of(bits, index);
  });
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) mass += __shfl_xor_sync(kAllLanes, mass, offset);
  __syncwarp();  // the list is complete
  part.listed_count = s.listed_count[warp];
  return mass;
}

/// Counts the tokens of the part that the search covers.
__device__ void count(Shared& s, const Part& part, const Search& search) {
  const unsigned span = search.high - search.low, shift = static_cast<unsigned>(shift_of(search));
  part.each_from(search.low, [&](unsigned bits, unsigned) {
    if (bits - search.low > span) return;
    atomicAdd(&s.mass[(bits - search.low) >> shift], weight_of_bits(bits));
    atomicAdd(&s.count[(bits - search.low) >> shift], 1u);
  });
}

/// In the first block: goes down the bins until there is enough, and makes the next search.
__device__ void find_bin(Shared& s) {
  __shared__ Sums of_warp[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32,
            top = kBins - 1 - static_cast<int>(threadIdx.x) * kOwnBins;
  const Search search = s.search;
  Sums own{0, 0};
#pragma unroll
  for (int b = 0; b < kOwnBins; ++b) own.mass += s.mass[top - b], own.count += s.count[top - b];
  Sums inclusive = own;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned mass = __shfl_up_sync(kAllLanes, inclusive.mass, offset);
    const unsigned count = __shfl_up_sync(kAllLanes, inclusive.count, offset);
    if (lane >= offset) inclusive.mass += mass, inclusive.count += count;
  }
  if (lane == 31) of_warp[warp] = inclusive;
  __syncthreads();  // the sums of all warps; all have read the search
  Sums above{inclusive.mass - own.mass, inclusive.count - own.count};
  for (int w = 0; w < warp; ++w) above.mass += of_warp[w].mass, above.count += of_warp[w].count;
  const auto enough = [&](const Sums& x) { return x.mass >= search.need || x.count >= search.most; };
  const Sums below{above.mass + own.mass, above.count + own.count};
  if (!enough(above) && enough(below)) {
    int bin = top;
    while (!enough({above.mass + s.mass[bin], above.count + s.count[bin]}))
      above.mass += s.mass[bin], above.count += s.count[bin], --bin;
    const int shift = shift_of(search);
    const unsigned low = search.low + (static_cast<unsigned>(bin) << shift);
    s.search = {low,
                min(search.high, low + ((1u << shift) - 1)),
                search.need - above.mass,
                search.most - above.count,
                s.count[bin],
                1};
  } else if (threadIdx.x == kThreads - 1 && !enough(below)) {
    s.search.need -= below.mass, s.search.most -= below.count, s.search.found = 0;
  }
  __syncthreads();  // the next search is there
}

/// In the first block: the list has all tokens of the last bin; a thread has one and counts those ahead of
/// it.
__device__ void find_last(Shared& s) {
  const Search search = s.search;
  const unsigned n = s.candidate_count;
  if (threadIdx.x >= n) return;
  const auto mass_of = [](Wide candidate) { return weight_of_bits(bits_of(candidate)); };
  const Wide own = s.candidates[threadIdx.x];
  Sums ahead{0, 0};
  for (unsigned i = 0; i < n; ++i)
    if (s.candidates[i] > own) ahead.mass += mass_of(s.candidates[i]), ++ahead.count;
  const Sums with{ahead.mass + mass_of(own), ahead.count + 1};
  if (ahead.mass < search.need && ahead.count < search.most &&
      (with.mass >= search.need || with.count >= search.most))
    s.last = {bits_of(own), index_of(own)};
}

/// The leader's value of a variable of `Shared` goes to all blocks.
template <class T>
__device__ void spread(cg::cluster_group& cluster, T& what) {
  __syncthreads();  // the value is there
  if (cluster.block_rank() == 0 && threadIdx.x > 0 && threadIdx.x < kCluster)
    *cluster.map_shared_rank(&what, threadIdx.x) = what;
  cluster.sync();  // all blocks have it
}

/// The token in the warp's part where the sum of weights first exceeds the target; `before` is the sum of
/// earlier parts. Tokens below `low` have none.
template <class Weight, class Found>
__device__ void find(const Part& part, unsigned low, unsigned before, unsigned target, Weight weight_of,
                     Found found) {
  const unsigned lane = threadIdx.x % 32;
  if (part.suffices(low)) {  // each lane adds up what precedes its own
    for (unsigned i = lane; i < part.listed_count; i += 32) {
      const unsigned index = index_of(part.listed[i]), own = weight_of(bits_of(part.listed[i]), index);
      unsigned start = before;
      for (unsigned j = 0; j < part.listed_count; ++j)
        if (index_of(part.listed[j]) < index)
          start += weight_of(bits_of(part.listed[j]), index_of(part.listed[j]));
      if (target >= start && target - start < own) found(index);
    }
    return;
  }
  for (unsigned base = part.first; base < part.end; base += 128) {
    const unsigned index = base + lane * 4;
    const float4 p = part.load(index);
    const unsigned own[4] = {
        weight_of(__float_as_uint(p.x), index), weight_of(__float_as_uint(p.y), index + 1),
        weight_of(__float_as_uint(p.z), index + 2), weight_of(__float_as_uint(p.w), index + 3)};
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
    if (before > target) return;
  }
}

/// Adds up weights in the order of the tokens and calls found(index) where the sum first exceeds the target.
template <class Weight, class Target, class Found>
__device__ void locate(cg::cluster_group& cluster, Shared& s, const Part& part, unsigned low,
                       Weight weight_of, Target target_of, Found found) {
  const int warp = threadIdx.x / 32;
  unsigned mass = 0;
  part.each_from(low, [&](unsigned bits, unsigned index) { mass += weight_of(bits, index); });
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) mass += __shfl_xor_sync(kAllLanes, mass, offset);
  if (threadIdx.x % 32 == 0) s.warp_mass[warp] = mass;
  __syncthreads();  // the sums of all warps
  unsigned block = 0, before = 0, all = 0;
  for (int w = 0; w < kWarps; ++w) block += s.warp_mass[w];
  if (threadIdx.x < kCluster)
    cluster.map_shared_rank(&s, threadIdx.x)->block_mass[cluster.block_rank()] = block;
  cluster.sync();  // the sums of all blocks
  for (unsigned r = 0; r < kCluster; ++r) {
    if (r < cluster.block_rank()) before += s.block_mass[r];
    all += s.block_mass[r];
  }
  const unsigned target = target_of(all);
  for (int w = 0; w < warp; ++w) before += s.warp_mass[w];
  if (target >= before && target - before < mass) find(part, low, before, target, weight_of, found);
}

/// Windows and finer bins until at most kMostCandidates tokens are left, or only tokens of one probability.
__device__ Search search_bins(cg::cluster_group& cluster, Shared& s, const Part& part, float top_p) {
  Shared* first = cluster.map_shared_rank(&s, 0);
  const bool leader = cluster.block_rank() == 0;
  for (int window = 0, step = 0;; ++step) {
    count(s, part, s.search);
    __syncthreads();  // the block has counted
    for (int b = threadIdx.x; !leader && b < kBins; b += kThreads)
      if (s.count[b] > 0) atomicAdd(&first->mass[b], s.mass[b]), atomicAdd(&first->count[b], s.count[b]);
    cluster.sync();  // the first block has the counts of all, and the mass of the row
    if (leader) {
      if (step == 0 && threadIdx.x == 0) {
        const auto share = static_cast<unsigned>(top_p * 0x1p24f);
        s.search.need = max(1u, static_cast<unsigned>((Wide{share} * s.total + 0xffffff) >> 24));
      }
      __syncthreads();  // the search is complete
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

__device__ Last threshold(cg::cluster_group& cluster, Shared& s, const Part& part, float top_p) {
  const Search search = search_bins(cluster, s, part, top_p);
  if (search.count > kMostCandidates) {  // equal ones: as many as are needed, the first in the row
    const unsigned own = weight_of_bits(search.low), equal = min((search.need + own - 1) / own, search.most);
    const auto is_equal = [&](unsigned bits, unsigned) { return bits == search.low ? 1u : 0u; };
    const auto found = [&](unsigned index) {
      for (int r = 0; r < kCluster; ++r) cluster.map_shared_rank(&s, r)->last = {search.low, index};
    };
    locate(
        cluster, s, part, search.low, is_equal, [&](unsigned) { return equal - 1; }, found);
    cluster.sync();  // all blocks have it
    return s.last;
  }
  Shared* first = cluster.map_shared_rank(&s, 0);
  part.each_from(search.low, [&](unsigned bits, unsigned index) {
    if (bits - search.low <= search.high - search.low)
      first->candidates[atomicAdd(&first->candidate_count, 1u)] = token_of(bits, index);
  });
  cluster.sync();  // the list is complete
  if (cluster.block_rank() == 0) find_last(s);
  spread(cluster, s.last);
  return s.last;
}

__global__ void __launch_bounds__(kThreads, 4)
    sample(const float* __restrict__ probs, const float* __restrict__ top_p, const int* __restrict__ top_k,
           const float* __restrict__ u, int* __restrict__ token, int64_t v) {
  __shared__ Shared s;
  cg::cluster_group cluster = cg::this_cluster();
  const int warp = threadIdx.x / 32;
  const int64_t row = blockIdx.x / kCluster, parts = kCluster * kWarps,
                share = ((v + parts - 1) / parts + 3) / 4 * 4;
  const int64_t first = min((int64_t{cluster.block_rank()} * kWarps + warp) * share, v),
                end = min(first + share, v);
  Part part{probs + row * v,
            static_cast<unsigned>(first),
            static_cast<unsigned>(end),
            v % 4 == 0,
            s.listed[warp],
            0};
  for (int b = threadIdx.x; b < kBins; b += kThreads) s.mass[b] = s.count[b] = 0;
  if (threadIdx.x < kWarps) s.listed_count[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    s.candidate_count = s.total = 0;
    s.search.most = static_cast<unsigned>(top_k[row]);
    s.search.count = s.search.found = 0;
    set_window(s.search, 0);
  }
  cluster.sync();  // the counters of all are clear
  const unsigned mass = read_part(s, part);
  if (threadIdx.x % 32 == 0) atomicAdd(&cluster.map_shared_rank(&s, 0)->total, mass);

  const Last last = threshold(cluster, s, part, top_p[row]);
  const auto kept = [&](unsigned bits, unsigned index) {
    return bits > last.bits || (bits == last.bits && index <= last.index) ? weight_of_bits(bits) : 0;
  };
  const auto target = [&](unsigned all) {
    return static_cast<unsigned>((Wide{static_cast<unsigned>(u[row] * 0x1p24f)} * all) >> 24);
  };
  locate(cluster, s, part, last.bits, kept, target,
         [&](unsigned index) { token[row] = static_cast<int>(index); });
}

extern "C" void launch(const float* probs /*[b,v]*/, const float* top_p /*[b]*/, const int32_t* top_k /*[b]*/,
                       const float* u /*[b]*/, int32_t* token /*[b]*/, int64_t b, int64_t v,
                       void* /*workspace*/, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(b * kCluster));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = kCluster;
  attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
  config.attrs = attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, sample, probs, top_p, top_k, u, token, v);
}
