// Rung 4: the copy engine moves the rows, and it begins before the order is known.
//
// Changed     one warp of a block brings rows of its tokens to a ring in shared memory (bulk copies, 8 KB
//             each) and stores each from there to all of its places, a lane for each place; a second warp
//             stores zeros. The second kernel begins while the first one counts (a programmatic launch),
//             and its ring fills while the block looks for its places.
// Why         rung 3 keeps values in registers, so its loads wait for its stores, and memory rests while
//             blocks count and place.
// Prediction  1.05x to 1.1x rung 3: the speed of a copy, 0.25 ms, and 3 us before the first store.
// Came        275 us on an H100, 2681 GB/s, 0.98 times the rung before. 152 % of the native baseline.
//
// Shapes      x [t, h], expert and weight [t, k]; a [m, h], row_weight [m], place [t, k], counts
//             [experts], tile_offsets [experts + 1].
// Launch      twice a block of 1024 threads for each multiprocessor, or one for 8 tokens if there are
//             fewer.
// Resources   one block per multiprocessor; 136 KB of ring and zeros, and 48 bytes for each expert;
//             workspace: a count for each block and expert.
// Cost        2 h bytes for each token and for each slot, and the order: blocks times experts counts of 4
//             bytes for each block.
// Divides     h % 8 == 0, experts <= 1024, k <= 32 (the problem says so).
// Source      this project. Bulk copies and mbarriers need a GPU of compute capability 9.0.
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
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");  // the next kernel may begin
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
__device__ void find_places(const int* counts_of, int* __restrict__ counts, int* __restrict__ tile_offsets,
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

// ---- programmatic launches: what a kernel may do before the one in front of it has ended ------------------
__device__ void wait_for_kernel_in_front() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// ---- bulk copies ------------------------------------------------------------------------------------------
constexpr int kStages = 16, kPiece = 512;  // [vectors] of a row, at most
constexpr int kStoring = 6;                // stages whose stores may be on their way
constexpr int kRingBytes = (kStages + 1) * kPiece * 16;  // and a piece of zeros

__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void load(uint4* to, const uint4* from, int bytes, uint64_t* full) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(full)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address(to)), "l"(from),
               "r"(bytes), "r"(address(full))
               : "memory");
}
__device__ void store(uint4* to, const uint4* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(address(from)), "r"(bytes) : "memory");
}
__device__ void wait(uint64_t* full, int parity) {
  uint32_t over = 0;
  while (!over)
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}" : "=r"(over) : "r"(address(full)), "r"(parity) : "memory");
}

__global__ void __launch_bounds__(kThreads, 1)
    place_and_copy(const uint4* __restrict__ x, const int* __restrict__ expert, const float* __restrict__ weight,
                   const int* counts_of, uint4* __restrict__ a, float* __restrict__ row_weight, int* place,
                   int* __restrict__ counts, int* __restrict__ tile_offsets, Sizes s) {
  extern __shared__ __align__(128) uint4 ring[];
  __shared__ int parts[kWarps];
  __shared__ uint64_t full[kStages];
  uint4* const zeros = ring + kStages * kPiece;                      // [kPiece]
  int2* const empty = reinterpret_cast<int2*>(zeros + kPiece);       // [experts + 1]
  int* const next = reinterpret_cast<int*>(empty + s.experts + 1);  // [2, experts], the second half only to add up
  const int lane = threadIdx.x % 32, pieces = (s.vectors + kPiece - 1) / kPiece;
  const int first = s.first_of(blockIdx.x), units = (s.first_of(blockIdx.x + 1) - first) * pieces;
  const auto token_of = [&](int unit) { return first + unit / pieces; };
  const auto begin_of = [&](int unit) { return unit % pieces * kPiece; };  // [vectors]
  const auto bytes_of = [&](int unit) { return min(s.vectors - begin_of(unit), kPiece) * 16; };
  const auto fetch = [&](int unit) {  // by lane 0 of warp 0
    load(ring + unit % kStages * kPiece, x + int64_t{token_of(unit)} * s.vectors + begin_of(unit), bytes_of(unit), full + unit % kStages);
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(full + i)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int unit = 0; unit < min(units, kStages); ++unit) fetch(unit);
  }
  for (int i = threadIdx.x; i < kPiece; i += kThreads) zeros[i] = uint4{};
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
  wait_for_kernel_in_front();                                   // the counts are there
  find_places(counts_of, counts, tile_offsets, s, next, empty, parts);
  place_slots(expert, weight, place, row_weight, s, next, reinterpret_cast<uint8_t*>(next + 2 * s.experts));
  if (threadIdx.x >= 64) return;
  if (threadIdx.x >= 32) {  // a second warp: zeros
    for_each_empty(empty, s, lane, 32, [&](int row) {
      row_weight[row] = 0;
      for (int i = 0; i < s.vectors; i += kPiece) store(a + int64_t{row} * s.vectors + i, zeros, min(s.vectors - i, kPiece) * 16);
    });
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the zeros are read before the block ends
    return;
  }
  const auto place_of = [&](int unit) { return unit < units && lane < s.k ? place[token_of(unit) * s.k + lane] : -1; };
  int row = place_of(0);
  for (int unit = 0; unit < units; ++unit) {
    const int stage = unit % kStages, next_row = place_of(unit + 1);
    wait(full + stage, unit / kStages % 2);
    if (row >= 0) store(a + int64_t{row} * s.vectors + begin_of(unit), ring + stage * kPiece, bytes_of(unit));
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kStoring) : "memory");
    __syncwarp();  // the stores of all lanes, up to kStoring units ago, have read their stages
    const int refill = unit - kStoring + kStages;
    if (lane == 0 && unit >= kStoring && refill < units) fetch(refill);
    row = next_row;
  }
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the ring is read before the block ends
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
  const int bytes = kRingBytes + s.experts * (4 * static_cast<int>(sizeof(int)) + kWarps) + static_cast<int>(sizeof(int2));
  count<<<blocks, kThreads, 0, stream>>>(expert, counts_of, s);
  cudaFuncSetAttribute(place_and_copy, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.stream = stream;
  config.attrs = early;
  config.numAttrs = 1;
  const int* const counted = counts_of;
  cudaLaunchKernelEx(&config, place_and_copy, reinterpret_cast<const uint4*>(x), expert, weight, counted,
                     reinterpret_cast<uint4*>(a), row_weight, place, counts, tile_offsets, s);
}
