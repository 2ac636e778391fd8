// Rung 3: one pass. A block asks its predecessors while they still run.
//
// Changed     x is read once and y written once. A block takes the next tile of 16384 elements, scans it in
//             registers (four elements per thread and chunk, shuffles within a warp, shared memory between
//             warps), publishes the tile's sum, and looks back: sums of the tiles before it are added up
//             until one is found that already knows its whole prefix.
// Why         2 n floats instead of 4 n. No block waits for a chain of all tiles: 32 predecessors are read at
//             once, and only those as far as the nearest known prefix are waited for. What is known moves on
//             by 32 tiles in the time of one look at memory, so a tile must be large: 64 elements per thread.
// Prediction  twice rung 2 by traffic alone: 90 % of a copy. (Measured on an H200: 77 %. Tiles of 8192: 70 %.
//             Looking at 128 predecessors at once, or loading the next tile meanwhile: slower, because more
//             of the reads are of the states.)
//
// Shapes      x, y [n]; n up to 2^31 * 16384; both on 16 bytes.
// Launch      <<<ceil(n / 16384), 256>>> after a memset of the tiles' states.
// Resources   at most 85 registers: three blocks per multiprocessor; 48 bytes of shared memory; 8 bytes of
//             workspace per tile.
// Cost        3 n FLOPs, n would do; 8 n bytes.
// Divides     whole vectors go by 16 bytes; the last one, if it is ragged, element by element.
// Source      D. Merrill and M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA,
//             2016. The order in which sums are added depends on who was ready: bits may differ from run to
//             run.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kChunks = 16;  // float4 a thread
constexpr int kWarpShare = kChunks * 32 * 4;
constexpr int64_t kTile = int64_t{kWarps} * kWarpShare;  // elements a block
constexpr unsigned kAllLanes = 0xffffffffu;

/// What others may know of a tile, in one word that cannot be torn: a flag above, a float below. Zero:
/// nothing yet.
using State = unsigned long long;
constexpr State kSumKnown = State{1} << 32, kPrefixKnown = State{2} << 32;

__device__ State state_of(State flag, float value) { return flag | __float_as_uint(value); }
__device__ bool knows_prefix(State state) { return (state & kPrefixKnown) != 0; }
__device__ float value_of(State state) { return __uint_as_float(static_cast<unsigned>(state)); }
__device__ void publish(State* at, State state) { *static_cast<volatile State*>(at) = state; }
__device__ State look(const State* at) { return *static_cast<const volatile State*>(at); }

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

/// The sum of all tiles before `tile`, by one whole warp: lane l looks at tile - 1 - l, then 32 further back.
__device__ float look_back(const State* states, int64_t tile) {
  const int lane = threadIdx.x % 32;
  float before = 0;
  for (int64_t last = tile - 1;; last -= 32) {
    const int64_t mine = last - lane;
    State state = mine >= 0 ? look(states + mine) : kPrefixKnown;
    unsigned done;
    int nearest;
    for (;;) {  // tile numbers are taken in order: whoever is waited for has started, and waits for nobody behind it
      done = __ballot_sync(kAllLanes, knows_prefix(state));
      nearest = done != 0 ? __ffs(done) - 1 : 31;
      if (!__any_sync(kAllLanes, lane <= nearest && state == 0)) break;
      if (state == 0) state = look(states + mine);
    }
    before += warp_sum(lane <= nearest ? value_of(state) : 0.0f);
    if (done != 0) return before;
  }
}

__device__ float4 load(const float* x, int64_t i, int64_t n) {
  if (i + 4 <= n) return __ldcs(reinterpret_cast<const float4*>(x + i));
  return make_float4(i < n ? x[i] : 0.0f, i + 1 < n ? x[i + 1] : 0.0f, i + 2 < n ? x[i + 2] : 0.0f, 0.0f);
}
__device__ void store(float* y, int64_t i, int64_t n, float4 v) {
  if (i + 4 <= n) {
    __stcs(reinterpret_cast<float4*>(y + i), v);
    return;
  }
  if (i < n) y[i] = v.x;
  if (i + 1 < n) y[i + 1] = v.y;
  if (i + 2 < n) y[i + 2] = v.z;
}

__global__ void __launch_bounds__(kThreads, 3)
    scan(const float* __restrict__ x, float* __restrict__ y, int64_t n, State* states, unsigned* next_tile) {
  __shared__ float warp_sums[kWarps];
  __shared__ unsigned tile_taken;
  __shared__ float tile_prefix;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) tile_taken = atomicAdd(next_tile, 1u);
  __syncthreads();
  const int64_t tile = tile_taken;
  const int64_t first = tile * kTile + warp * kWarpShare + lane * 4;

  float4 v[kChunks];  // chunk c of a warp: 128 neighbouring elements
#pragma unroll
  for (int c = 0; c < kChunks; ++c) v[c] = load(x, first + c * 128, n);

  float warp_total = 0;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    v[c].y += v[c].x;
    v[c].z += v[c].y;
    v[c].w += v[c].z;
    const float inclusive = inclusive_in_warp(v[c].w);
    const float before = warp_total + exclusive_from(inclusive);
    v[c].x += before, v[c].y += before, v[c].z += before, v[c].w += before;
    warp_total += __shfl_sync(kAllLanes, inclusive, 31);
  }
  if (lane == 0) warp_sums[warp] = warp_total;
  __syncthreads();

  if (warp == 0) {
    const float inclusive = inclusive_in_warp(lane < kWarps ? warp_sums[lane] : 0.0f);
    const float tile_sum = __shfl_sync(kAllLanes, inclusive, 31);
    const float before = exclusive_from(inclusive);
    if (lane < kWarps) warp_sums[lane] = before;  // from here on: what lies before each warp
    if (lane == 0 && tile > 0) publish(states + tile, state_of(kSumKnown, tile_sum));
    const float prefix = tile > 0 ? look_back(states, tile) : 0.0f;
    if (lane == 0) {
      publish(states + tile, state_of(kPrefixKnown, prefix + tile_sum));
      tile_prefix = prefix;
    }
  }
  __syncthreads();

  const float before = tile_prefix + warp_sums[warp];
#pragma unroll
  for (int c = 0; c < kChunks; ++c)
    store(y, first + c * 128, n, make_float4(before + v[c].x, before + v[c].y, before + v[c].z, before + v[c].w));
}

int64_t tiles_of(int64_t n) { return (n + kTile - 1) / kTile; }

/// The states of all tiles, then the counter.
extern "C" size_t workspace_bytes(int64_t n) { return static_cast<size_t>(tiles_of(n) + 1) * sizeof(State); }

extern "C" void launch(const float* x /*[n]*/, float* y /*[n]*/, int64_t n, void* workspace, cudaStream_t stream) {
  State* states = static_cast<State*>(workspace);
  const int64_t tiles = tiles_of(n);
  cudaMemsetAsync(workspace, 0, workspace_bytes(n), stream);
  scan<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(x, y, n, states, reinterpret_cast<unsigned*>(states + tiles));
}
