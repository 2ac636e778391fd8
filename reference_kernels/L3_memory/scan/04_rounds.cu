// Rung 4: rounds. Every block knows when the others' sums will be ready, and has the next tile by then.
//
// Changed     as many blocks as fit stay until the end, and take every G-th tile. The tiles that come next
//             are on their way to shared memory (cp.async) while this one is stored. A tile is scanned, and
//             its sum published, a whole round before any block asks for it; so a block reads the G sums of
//             the last round at once, in one look, and never looks further back. What is left for the last
//             round is divided evenly, in smaller tiles.
// Why         rung 3 loads, waits for its predecessors, and stores, and a multiprocessor has three blocks to
//             fill the gaps. Here loading never stops, and no block waits for a chain: the sums are there
//             before they are needed. A last round of whole tiles would keep a few blocks busy for as long as
//             a full one: 1.5 % of the time for 2^27 elements.
// Prediction  the gaps of rung 3 are a fifth of its time; half of them go: 90 % of a copy. (The larger a
//             thread's share of a tile, the better: 12 vectors per thread and two blocks per multiprocessor
//             gave 75 %, 24 and one block 89 %.)
//
// Shapes      x, y [n]; both on 16 bytes.
// Launch      <<<blocks that fit at once, or fewer where n is small, kThreads>>> after a memset of the tiles'
//             states. All blocks must run at once, so no other program may use the GPU: a block waits for the
//             sums of all others.
// Resources   253 registers, 192 of them values; one block per multiprocessor; 192 KB of shared memory; 8
//             bytes of workspace per tile.
// Cost        3 n FLOPs, n would do; 8 n bytes, and for each tile a read of 8 bytes from L2 for each block.
// Divides     whole vectors go by 16 bytes; the last one, if it is ragged, is padded with zeros and stored
//             element by element.
// Source      this project. Sums are added in one order whatever the blocks do: the same bits in every run on
//             the same GPU.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kVectors = 24;  // float4 a thread and tile
constexpr int kStages = 2;    // tiles on their way
constexpr int kBlocks = 1;    // a multiprocessor
constexpr int kWarpShare = kVectors * 32 * 4;
constexpr int64_t kTile = int64_t{kWarps} * kWarpShare;  // elements
constexpr int kSharedBytes = kStages * kThreads * kVectors * 16;
constexpr int64_t kStep = kThreads * 4;    // elements of one vector a thread: by these a last round's tiles are smaller
constexpr int64_t kMostBlocks = 1024;
constexpr int kLooks = 2;  // sums of others that a thread asks for before it goes on with its own work
constexpr unsigned kAllLanes = 0xffffffffu;

/// What others may know of a tile, in one word that cannot be torn: a flag above, the tile's sum below. Zero:
/// nothing yet.
using State = unsigned long long;
constexpr State kKnown = State{1} << 32;
__device__ void publish(State* at, float sum) { *static_cast<volatile State*>(at) = kKnown | __float_as_uint(sum); }
__device__ State look(const State* at) { return *static_cast<const volatile State*>(at); }
__device__ float value_of(State state) { return __uint_as_float(static_cast<unsigned>(state)); }

__device__ float inclusive_in_warp(float v) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const float below = __shfl_up_sync(kAllLanes, v, offset);
    if (threadIdx.x % 32 >= offset) v += below;
  }
  return v;
}
/// The inclusive scan shifted up by one lane; 0 in lane 0.
__device__ float exclusive_from(float inclusive) {
  const float below = __shfl_up_sync(kAllLanes, inclusive, 1);
  return threadIdx.x % 32 == 0 ? 0.0f : below;
}
__device__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(kAllLanes, v, offset);
  return v;
}

/// The sums of as many tiles as there are blocks, those right before one: requested early, added up late.
struct Before {
  const State* states;
  int64_t begin, end;  // tiles; those below 0 do not exist
  State seen[kLooks];

  __device__ int64_t mine(int k) const { return begin + threadIdx.x + k * kThreads; }
  __device__ bool exists(int k) const { return mine(k) >= 0 && mine(k) < end; }
  __device__ Before(const State* states_, int64_t tile) : states(states_), begin(tile - gridDim.x), end(tile) {
#pragma unroll
    for (int k = 0; k < kLooks; ++k) seen[k] = exists(k) ? look(states + mine(k)) : kKnown;
  }
  /// This thread's part of the total. A block that others wait for is running, and waits only for earlier
  /// rounds.
  __device__ float sum() {
    float total = 0;
#pragma unroll
    for (int k = 0; k < kLooks; ++k) {
      while (seen[k] == 0) seen[k] = look(states + mine(k));
      total += value_of(seen[k]);
    }
    for (int k = kLooks; begin + k * kThreads < end; ++k) {  // a GPU with more blocks than two for each thread
      if (!exists(k)) continue;
      State state = look(states + mine(k));
      while (state == 0) state = look(states + mine(k));
      total += value_of(state);
    }
    return total;
  }
};

/// A round's tiles lie side by side. They are whole, except in a last round that has fewer vectors per
/// thread.
struct Rounds {
  int64_t n, full, last_vectors;  // rounds of whole tiles; 0: there is no other
  Rounds(int64_t n_, int64_t blocks) : n(n_), full(n_ / (blocks * kTile)) {
    last_vectors = (n - full * blocks * kTile + blocks * kStep - 1) / (blocks * kStep);
  }
  __device__ int64_t count() const { return full + (last_vectors > 0); }
  /// The first of this thread's elements in a round.
  __device__ int64_t first(int64_t round) const {
    const int64_t warp_share = (round < full ? kVectors : last_vectors) * 128;
    return round * gridDim.x * kTile + (blockIdx.x * kWarps + threadIdx.x / 32) * warp_share + threadIdx.x % 32 * 4;
  }
  /// How many elements lie between there and the end of what this thread's warp has in the round, or of x.
  __device__ int64_t left(int64_t round) const {
    const int64_t all = n - first(round), own = last_vectors * 128 - threadIdx.x % 32 * 4;
    return round < full || all < own ? all : own;
  }
};

/// The vectors of a thread in a tile lie 128 elements apart; the first of them at x or y, `left` elements
/// before the end.
__device__ bool all_exist(int64_t left) { return left >= (kVectors - 1) * 128 + 4; }
__device__ int existing(int64_t left) { return left >= 4 ? 4 : left > 0 ? static_cast<int>(left) : 0; }

__device__ void fetch_vectors(float4* to, const float* x, int64_t left) {
  if (all_exist(left)) {
#pragma unroll
    for (int c = 0; c < kVectors; ++c) __pipeline_memcpy_async(to + c * 32, x + c * 128, 16);
    return;
  }
#pragma unroll 1
  for (int c = 0; c < kVectors; ++c, x += 128) {
    const int there = existing(left - c * 128);
    if (there == 4)
      __pipeline_memcpy_async(to + c * 32, x, 16);
    else
      to[c * 32] = make_float4(there > 0 ? x[0] : 0, there > 1 ? x[1] : 0, there > 2 ? x[2] : 0, 0);
  }
}

/// `spare`: shared memory for a thread's vectors, 512 bytes apart. Only the last round uses it, when no
/// copies are on their way.
__device__ void store_vectors(float* y, const float4 (&v)[kVectors], float before, int64_t left, float4* spare) {
  const auto sum = [&](int c) { return make_float4(before + v[c].x, before + v[c].y, before + v[c].z, before + v[c].w); };
  if (all_exist(left)) {
#pragma unroll
    for (int c = 0; c < kVectors; ++c) __stcs(reinterpret_cast<float4*>(y + c * 128), sum(c));
    return;
  }
#pragma unroll
  for (int c = 0; c < kVectors; ++c) spare[c * 32] = sum(c);
#pragma unroll 1  // from memory, since registers have no index: a loop of a few instructions, not 24 times as many
  for (int c = 0; left - c * 128 > 0; ++c) {
    const int there = existing(left - c * 128);
    const float4 s = spare[c * 32];
    if (there == 4) {
      __stcs(reinterpret_cast<float4*>(y + c * 128), s);
      continue;
    }
    y[c * 128] = s.x;
    if (there > 1) y[c * 128 + 1] = s.y;
    if (there > 2) y[c * 128 + 2] = s.z;
  }
}

__global__ void __launch_bounds__(kThreads, kBlocks)
    scan(const float* __restrict__ x, float* __restrict__ y, const Rounds rounds, State* states) {
  extern __shared__ float4 ring[];
  __shared__ float warp_totals[3][kWarps], round_parts[2][kWarps];  // several, so that one barrier a round suffices
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t count = rounds.count();
  float4* const own = ring + warp * kVectors * 32 + lane;  // a thread copies what it will itself read: no barrier for that

  const auto fetch = [&](int64_t round, int stage) {  // a group of copies for each round, also for those behind the end
    if (round < count) fetch_vectors(own + stage * kThreads * kVectors, x + rounds.first(round), rounds.left(round));
    __pipeline_commit();
  };
  // Takes a tile out of the ring, scanned within the warp.
  const auto take = [&](float4 (&v)[kVectors], int stage, int slot) {
    float total = 0;
#pragma unroll
    for (int c = 0; c < kVectors; ++c) {
      v[c] = own[stage * kThreads * kVectors + c * 32];
      v[c].y += v[c].x;
      v[c].z += v[c].y;
      v[c].w += v[c].z;
      const float inclusive = inclusive_in_warp(v[c].w);
      const float before = total + exclusive_from(inclusive);
      v[c].x += before, v[c].y += before, v[c].z += before, v[c].w += before;
      total += __shfl_sync(kAllLanes, inclusive, 31);
    }
    if (lane == 0) warp_totals[slot][warp] = total;
  };
  const auto publish_sum = [&](int64_t round, int slot) {  // by one warp
    const float sum = warp_sum(lane < kWarps ? warp_totals[slot][lane] : 0.0f);
    if (lane == 0) publish(states + round * gridDim.x + blockIdx.x, sum);
  };

#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) fetch(stage, stage);

  float4 present[kVectors], following[kVectors];
  float prefix = 0;  // of all rounds before this one
  int stage = 0, slot = 0, parity = 0;
#pragma unroll 1  // the code of one round is 15 KB, and comes from memory in each launch
  for (int64_t round = -1; round < count; ++round) {  // in round -1 there is only a following tile
    Before those(states, round * gridDim.x + blockIdx.x);
    const int next_slot = slot == 2 ? 0 : slot + 1;
    const bool goes_on = round + 1 < count;
    __pipeline_wait_prior(kStages - 1);
    if (goes_on) take(following, stage, next_slot);
    fetch(round + kStages + 1, stage);
    const float part = warp_sum(those.sum());
    if (lane == 0) round_parts[parity][warp] = part;
    __syncthreads();  // all parts of the sum of those before, and all totals of the following tile
    if (warp == 0 && goes_on) publish_sum(round + 1, next_slot);
    prefix += warp_sum(lane < kWarps ? round_parts[parity][lane] : 0.0f);
    const float before = prefix + warp_sum(round >= 0 && lane < warp ? warp_totals[slot][lane] : 0.0f);
    if (round >= 0) store_vectors(y + rounds.first(round), present, before, rounds.left(round), own + stage * kThreads * kVectors);
#pragma unroll
    for (int c = 0; c < kVectors; ++c) present[c] = following[c];
    stage = stage + 1 == kStages ? 0 : stage + 1;
    slot = next_slot, parity ^= 1;
  }
}

/// The states of all tiles.
extern "C" size_t workspace_bytes(int64_t n) { return static_cast<size_t>(n / kTile + kMostBlocks) * sizeof(State); }

extern "C" void launch(const float* x /*[n]*/, float* y /*[n]*/, int64_t n, void* workspace, cudaStream_t stream) {
  cudaMemsetAsync(workspace, 0, workspace_bytes(n), stream);
  int device = 0, processors = 0, resident = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(scan, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, scan, kThreads, kSharedBytes);
  const int64_t useful = (n + kStep - 1) / kStep, most = std::min<int64_t>(int64_t{processors} * resident, kMostBlocks);
  const int64_t blocks = std::min(useful, most);
  scan<<<static_cast<unsigned>(blocks), kThreads, kSharedBytes, stream>>>(x, y, Rounds(n, blocks), static_cast<State*>(workspace));
}
