// Rung 3: counts of chunks instead of walks, and copies in the order of tokens: a row is read once.
//
// Changed     a first kernel counts how often each expert occurs in each block's chunk of tokens. In the
//             second kernel each block adds up those counts: all of them give the tiles, the chunks before
//             its own give its first row of each expert. Lanes of a warp with the same expert find each
//             other (match). Then the block copies its own tokens: a warp loads a part of a row once and
//             stores it to each of the row's places. Empty rows are shared out.
// Why         rung 2 compares each slot with each expert, and reads a row of x once for each expert, at
//             times so far apart that 67 MB of x do not stay in L2.
// Prediction  reads fall from 503 to 67 MB: 737 MB at 2.9 TB/s are 0.255 ms. The order costs 10 us instead
//             of 25.
//
// Shapes      x [t, h], expert and weight [t, k]; a [m, h], row_weight [m], place [t, k], counts
//             [experts], tile_offsets [experts + 1].
// Launch      twice a block of 1024 threads for each multiprocessor, or one for 8 tokens if there are
//             fewer.
// Resources   up to 64 registers; shared memory: 48 bytes for each expert; workspace: a count for each
//             block and expert.
// Cost        2 h bytes for each token and for each slot, and the order: blocks times experts counts of 4
//             bytes for each block.
// Divides     h % 8 == 0, experts <= 1024 (the problem says so).
// Source      this project; sorts by counts of chunks are in Satish, Harris and Garland, "Designing
//             Efficient Sorting Algorithms for Manycore GPUs" (2009).
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kTile = 128, kThreads = 1024, kWarps = kThreads / 32, kMostExperts = 1024, kMostBlocks = 256;
constexpr int kTokens = 8;  // of a block, at least
constexpr unsigned kAllLanes = 0xffffffffu;

/// What all kernels know.
struct Sizes {
  int t, k, experts, m, vectors;  // vectors: of 16 bytes in a row
  __device__ int first_of(int block) const {  // token
    return static_cast<int>(int64_t{t} * block / gridDim.x);
  }
};

__device__ int warp_sum(int v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(kAllLanes, v, offset);
  return v;
}
/// The sum over the threads below, in a block; `parts`: shared. *all: the sum over all threads.
__device__ int sum_below(int v, int* parts, int* all) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int inclusive = v;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int below = __shfl_up_sync(kAllLanes, inclusive, offset);
    if (lane >= offset) inclusive += below;
  }
  if (lane == 31) parts[warp] = inclusive;
  __syncthreads();
  const int part = parts[lane];
  *all = warp_sum(part);
  return inclusive - v + warp_sum(lane < warp ? part : 0);
}

/// How often each expert occurs among the tokens of each block.
__global__ void __launch_bounds__(kThreads) count(const int* __restrict__ expert, int* __restrict__ counts_of, Sizes s) {
  __shared__ int counts[kMostExperts];
  const int me = threadIdx.x;
  counts[me] = 0;
  __syncthreads();
  const int end = s.first_of(blockIdx.x + 1) * s.k;
  for (int i = s.first_of(blockIdx.x) * s.k + me; i < end; i += kThreads)
    if (expert[i] >= 0) atomicAdd(counts + expert[i], 1);  // a sum has no order
  __syncthreads();
  if (me < s.experts) counts_of[blockIdx.x * s.experts + me] = counts[me];
}

/// From the counts of all blocks: this block's next row of each expert, into `next`, and in `empty` the rows of each
/// expert that have no slot, with those behind all experts as the last entry. Block 0 writes counts and tiles.
__device__ void find_places(const int* __restrict__ counts_of, int* __restrict__ counts, int* __restrict__ tile_offsets,
                            const Sizes& s, int* next, int2* empty, int* parts) {
  // As many groups of threads as fit share the sum for each expert.
  const int width = (s.experts + 31) / 32 * 32, groups = kThreads / width;
  const int me = threadIdx.x % width, group = threadIdx.x / width;
  int* const before_of = next + s.experts;  // [experts]
  if (threadIdx.x < s.experts) next[threadIdx.x] = before_of[threadIdx.x] = 0;
  __syncthreads();
  if (group < groups && me < s.experts) {
    int all = 0, before = 0;
#pragma unroll 4
    for (int block = group; block < gridDim.x; block += groups) {
      const int there = counts_of[block * s.experts + me];
      all += there;
      if (block < blockIdx.x) before += there;
    }
    atomicAdd(next + me, all);
    atomicAdd(before_of + me, before);
  }
  __syncthreads();
  const bool mine = threadIdx.x < s.experts;
  const int count = mine ? next[threadIdx.x] : 0, tiles = (count + kTile - 1) / kTile;
  int all = 0;
  const int first = sum_below(tiles, parts, &all);
  if (mine) next[threadIdx.x] = first * kTile + before_of[threadIdx.x];
  if (blockIdx.x == 0) {
    if (mine) counts[threadIdx.x] = count, tile_offsets[threadIdx.x] = first;
    if (threadIdx.x == 0) tile_offsets[s.experts] = all;
  }
  if (mine) empty[threadIdx.x] = {first * kTile + count, (first + tiles) * kTile};
  if (threadIdx.x == 0) empty[s.experts] = {all * kTile, s.m};
}

/// Calls clear(row) for this block's share of the empty rows; thread `me` of `count` has a share of that.
template <class Clear>
__device__ void for_each_empty(const int2* empty, const Sizes& s, int me, int count, Clear clear) {
  const int blocks = gridDim.x, block = blockIdx.x;
  for (int e = me; e < s.experts; e += count)  // an expert has at most 127; the first of them goes to another block each time
    for (int row = empty[e].x + (block + 37 * e) % blocks; row < empty[e].y; row += blocks) clear(row);
  for (int row = empty[s.experts].x + block + blocks * me; row < empty[s.experts].y; row += blocks * count) clear(row);
}

/// The places of the block's slots, in order; `of_warp`: shared, a count for each warp and expert.
__device__ void place_slots(const int* __restrict__ expert, const float* __restrict__ weight, int* __restrict__ place,
                            float* __restrict__ row_weight, const Sizes& s, int* next, uint8_t* of_warp) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int end = s.first_of(blockIdx.x + 1) * s.k;
  for (int begin = s.first_of(blockIdx.x) * s.k; begin < end; begin += kThreads) {
    for (int i = threadIdx.x; i < kWarps * s.experts; i += kThreads) of_warp[i] = 0;
    __syncthreads();  // in the first turn also for `next`
    const int i = begin + static_cast<int>(threadIdx.x), wanted = i < end ? expert[i] : -1;
    const unsigned same = __match_any_sync(kAllLanes, wanted);
    const int rank = __popc(same & ((1u << lane) - 1));
    if (wanted >= 0 && rank == 0) of_warp[warp * s.experts + wanted] = static_cast<uint8_t>(__popc(same));
    __syncthreads();
    int to = -1;
    if (wanted >= 0) {
      to = next[wanted] + rank;
      for (int w = 0; w < warp; ++w) to += of_warp[w * s.experts + wanted];
      row_weight[to] = weight[i];
    }
    if (i < end) place[i] = to;
    __syncthreads();
    for (int e = threadIdx.x; e < s.experts; e += kThreads)  // for the next turn
      for (int w = 0; w < kWarps; ++w) next[e] += of_warp[w * s.experts + e];
    __syncthreads();
  }
}

constexpr int kParts = 8;  // vectors of a lane; 2 % faster than 4

__global__ void __launch_bounds__(kThreads, 1)
    place_and_copy(const uint4* __restrict__ x, const int* __restrict__ expert, const float* __restrict__ weight,
                   const int* __restrict__ counts_of, uint4* __restrict__ a, float* __restrict__ row_weight, int* place,
                   int* __restrict__ counts, int* __restrict__ tile_offsets, Sizes s) {
  extern __shared__ __align__(16) int shared[];
  __shared__ int parts[kWarps];
  int2* const empty = reinterpret_cast<int2*>(shared);            // [experts + 1]
  int* const next = reinterpret_cast<int*>(empty + s.experts + 1);  // [2, experts], the second half only to add up
  find_places(counts_of, counts, tile_offsets, s, next, empty, parts);
  place_slots(expert, weight, place, row_weight, s, next, reinterpret_cast<uint8_t*>(next + 2 * s.experts));
  // A warp has a token's next 32 kParts vectors.
  const int lane = threadIdx.x % 32, pieces = (s.vectors + 32 * kParts - 1) / (32 * kParts);
  const int first = s.first_of(blockIdx.x), tokens = s.first_of(blockIdx.x + 1) - first;
  for (int i = threadIdx.x / 32; i < tokens * pieces; i += kWarps) {
    const int token = first + i / pieces, begin = i % pieces * (32 * kParts) + lane;
    uint4 values[kParts];
#pragma unroll
    for (int p = 0; p < kParts; ++p)
      if (begin + p * 32 < s.vectors) values[p] = __ldcs(x + int64_t{token} * s.vectors + begin + p * 32);
    const int my_place = lane < s.k ? place[token * s.k + lane] : -1;  // this block wrote it
    for (int slot = 0; slot < s.k; ++slot) {
      const int row = __shfl_sync(kAllLanes, my_place, slot);
      if (row < 0) continue;
#pragma unroll
      for (int p = 0; p < kParts; ++p)
        if (begin + p * 32 < s.vectors) a[int64_t{row} * s.vectors + begin + p * 32] = values[p];
    }
  }
  for_each_empty(empty, s, threadIdx.x / 32, kWarps, [&](int row) {
    if (lane == 0) row_weight[row] = 0;
    for (int i = lane; i < s.vectors; i += 32) a[int64_t{row} * s.vectors + i] = uint4{};
  });
}

extern "C" size_t workspace_bytes(int64_t /*t*/, int64_t /*h*/, int64_t /*k*/, int64_t experts) {
  return static_cast<size_t>(kMostBlocks * experts) * sizeof(int);
}

extern "C" void launch(const bf16* x /*[t,h]*/, const int* expert /*[t,k]*/, const float* weight /*[t,k]*/,
                       bf16* a /*[128 * floor((t * k + 127 * experts) / 128),h]*/,
                       float* row_weight /*[128 * floor((t * k + 127 * experts) / 128)]*/, int* place /*[t,k]*/,
                       int* counts /*[experts]*/, int* tile_offsets /*[experts + 1]*/, int64_t t, int64_t h, int64_t k,
                       int64_t experts, void* workspace, cudaStream_t stream) {
  const Sizes s{static_cast<int>(t), static_cast<int>(k), static_cast<int>(experts),
                static_cast<int>((t * k + (kTile - 1) * experts) / kTile * kTile), static_cast<int>(h / 8)};
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int blocks = static_cast<int>(std::min<int64_t>(std::min(multiprocessors, kMostBlocks), (t + kTokens - 1) / kTokens));
  int* const counts_of = static_cast<int*>(workspace);  // [blocks, experts]
  const int bytes = s.experts * (4 * static_cast<int>(sizeof(int)) + kWarps) + static_cast<int>(sizeof(int2));
  count<<<blocks, kThreads, 0, stream>>>(expert, counts_of, s);
  place_and_copy<<<blocks, kThreads, bytes, stream>>>(reinterpret_cast<const uint4*>(x), expert, weight, counts_of,
                                                      reinterpret_cast<uint4*>(a), row_weight, place, counts, tile_offsets, s);
}
