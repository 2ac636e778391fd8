// Rung 10: the last percents: fragments one step ahead, several stages, and sizes chosen by measurement.
//
// Changed     the values of the next k are loaded from shared memory into registers while the current ones
//             are multiplied, also across the end of a tile: the barrier for the next tile stands one step
//             before it. Tiles wait in a ring of stages and are taken in bands, and every size is a
//             parameter: `Tuned` is the best of those that scripts/tune_sgemm.sh timed. The products of a
//             step are taken in squares of two by two, not row by row.
// Why         two warps per scheduler cannot hide the way to shared memory by themselves: rung 9 waits for
//             its first values after every barrier, and for some of the others. Blocks that run together
//             share rows of A and columns of B in L2. And registers have two banks: row by row, the compiler
//             puts all three operands of every fifteenth product into one (`cuobjdump -sass` shows it), in
//             squares of one in 160; an H200 is 3 % faster so.
// Prediction  1.05x to 1.1x rung 9; 95 % of cuBLAS.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes (copies beyond an edge write zeros).
// Launch      one block a tile in one dimension, in bands of kBand tile rows; threads, tile and stages as in
//             `Tuned`.
// Resources   up to 255 registers, 128 of them sums; shared memory ((tile m + 4) + tile n) * depth * 4 bytes
//             a stage.
// Cost        2 * m * n * k FLOPs; 4 * m * n * k * (1 / tile m + 1 / tile n) bytes of global loads.
// Divides     n % 4 == 0 for 16-byte copies of B and stores of C; any other shape uses 4-byte ones (kAligned
//             = false).
// Source      software pipelining of fragments, stages and bands as in CUTLASS (NVIDIA, 2017 to 2023).
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

/// Sizes of one variant: tile of a block, depth, tile of a warp, stages, blocks per multiprocessor.
template <int kTileM_, int kTileN_, int kDepth_, int kWarpM_, int kWarpN_, int kStages_, int kBlocks_>
struct Shape {
  static constexpr int kTileM = kTileM_, kTileN = kTileN_, kDepth = kDepth_, kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
  static constexpr int kPad = 4;  // keeps rows of the transposed tile on 16 bytes and spreads the transposing copies over banks
  static constexpr int kRowA = kTileM + kPad;
  static constexpr int kStageFloats = (kRowA + kTileN) * kDepth;
  static constexpr int kSharedBytes = kStages * kStageFloats * 4;
};

using Tuned = Shape<128, 256, 32, 64, 64, 3, 1>;

constexpr int kLanesM = 4, kLanesN = 8;  // the lanes of a warp as a grid
constexpr int kBand = 8;                 // tile rows

/// Copies kBytes to shared memory, asynchronously; writes zeros instead where the element does not exist.
template <int kBytes>
__device__ void copy_or_zero(float* to, const float* from, bool exists, const float* any_valid_address) {
  __pipeline_memcpy_async(to, exists ? from : any_valid_address, kBytes, exists ? 0 : kBytes);
}

/// The copies of one thread: every kStepA-th row of A's tile at one depth, and a vector of every kStepB-th
/// row of B's.
template <class S, bool kAligned>
struct Loader {
  static constexpr int kWidth = kAligned ? 4 : 1;  // floats of B a copy
  static constexpr int kAcrossB = S::kTileN / kWidth, kSkipB = S::kThreads < kAcrossB ? S::kThreads : kAcrossB;
  static constexpr int kStepA = S::kThreads / S::kDepth, kStepB = S::kThreads / kSkipB;
  static_assert(S::kTileM % kStepA == 0 && S::kDepth % kStepB == 0 && kAcrossB % kSkipB == 0, "equal shares for all threads");
  const float *a, *b;  // this thread's first elements of the next tiles
  const float* any_valid_address;
  int k, n;
  int rows_left, columns_left, depth_left;  // of the matrices, seen from this thread's first elements
  int a_row, a_depth, b_depth, b_column;    // where those lie in the tiles

  __device__ Loader(const float* a_matrix, const float* b_matrix, int m, int k_, int n_, int row0, int column0)
      : any_valid_address(a_matrix), k(k_), n(n_) {
    const int thread = threadIdx.x;
    a_row = thread / S::kDepth, a_depth = thread % S::kDepth;
    b_depth = thread / kSkipB, b_column = thread % kSkipB * kWidth;
    a = a_matrix + static_cast<int64_t>(row0 + a_row) * k + a_depth;
    b = b_matrix + static_cast<int64_t>(b_depth) * n + column0 + b_column;
    rows_left = m - row0 - a_row, columns_left = n - column0 - b_column, depth_left = k;
  }

  /// Starts the copies of the next tiles. kWhole: all of them lie inside, so nothing is checked.
  template <bool kWhole>
  __device__ void fetch(float* a_tile, float* b_tile) {
#pragma unroll
    for (int i = 0; i < S::kTileM; i += kStepA)
      copy_or_zero<4>(a_tile + a_depth * S::kRowA + a_row + i, a + i * k, kWhole || (i < rows_left && a_depth < depth_left),
                      any_valid_address);
#pragma unroll
    for (int i = 0; i < S::kDepth; i += kStepB)
#pragma unroll
      for (int j = 0; j < S::kTileN; j += kSkipB * kWidth)
        copy_or_zero<4 * kWidth>(b_tile + (b_depth + i) * S::kTileN + b_column + j, b + i * n + j,
                                 kWhole || (j < columns_left && b_depth + i < depth_left), any_valid_address);
    a += S::kDepth, b += static_cast<int64_t>(S::kDepth) * n, depth_left -= S::kDepth;
  }
};

/// Row or column, within the block's tile, of a thread's float4 group.
__device__ int my_offset(int warp_start, int lane, int lanes, int group) { return warp_start + (group * lanes + lane) * 4; }

template <int kGroups>
__device__ void unpack(const float4 (&from)[kGroups], float (&to)[kGroups * 4]) {
#pragma unroll
  for (int i = 0; i < kGroups; ++i) to[4 * i] = from[i].x, to[4 * i + 1] = from[i].y, to[4 * i + 2] = from[i].z, to[4 * i + 3] = from[i].w;
}

template <bool kAligned>
__device__ void store4(float* row, int column, int limit, const float (&v)[4]) {
  if (kAligned && column < limit) {
    *reinterpret_cast<float4*>(row + column) = make_float4(v[0], v[1], v[2], v[3]);
  } else {
    for (int i = 0; i < 4; ++i)
      if (column + i < limit) row[column + i] = v[i];
  }
}

template <class S, bool kAligned>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int k, int n) {
  constexpr int kGroupsM = S::kWarpM / (4 * kLanesM), kGroupsN = S::kWarpN / (4 * kLanesN);  // float4 a thread and step
  static_assert(S::kDepth % 2 == 0, "a tile begins with the first of the two sets of fragments");
  extern __shared__ float4 shared[];
  const auto a_tile = [&](int stage) { return reinterpret_cast<float*>(shared) + stage * S::kStageFloats; };
  const auto b_tile = [&](int stage) { return a_tile(stage) + S::kRowA * S::kDepth; };

  // Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may
  // be lower.
  const int tile_rows = (m + S::kTileM - 1) / S::kTileM, tile_columns = (n + S::kTileN - 1) / S::kTileN;
  const int band = blockIdx.x / (kBand * tile_columns), within = blockIdx.x % (kBand * tile_columns);
  const int height = tile_rows - band * kBand < kBand ? tile_rows - band * kBand : kBand;
  const int row0 = (band * kBand + within % height) * S::kTileM, column0 = within / height * S::kTileN;
  const bool inside = row0 + S::kTileM <= m && column0 + S::kTileN <= n;

  Loader<S, kAligned> loader(a, b, m, k, n, row0, column0);
  const auto fetch = [&](int stage) {  // a group of copies for each tile, also for those behind the end
    if (inside && loader.depth_left >= S::kDepth)
      loader.template fetch<true>(a_tile(stage), b_tile(stage));
    else if (loader.depth_left > 0)
      loader.template fetch<false>(a_tile(stage), b_tile(stage));
    __pipeline_commit();
  };
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (S::kTileN / S::kWarpN) * S::kWarpM, warp_column = warp % (S::kTileN / S::kWarpN) * S::kWarpN;
  const int lane_m = lane / kLanesN, lane_n = lane % kLanesN;

  float4 a_values[2][kGroupsM], b_values[2][kGroupsN];  // of two steps
  const auto load_values = [&](int slot, int stage, int step) {
#pragma unroll
    for (int p = 0; p < kGroupsM; ++p)
      a_values[slot][p] =
          *reinterpret_cast<const float4*>(a_tile(stage) + step * S::kRowA + my_offset(warp_row, lane_m, kLanesM, p));
#pragma unroll
    for (int q = 0; q < kGroupsN; ++q)
      b_values[slot][q] =
          *reinterpret_cast<const float4*>(b_tile(stage) + step * S::kTileN + my_offset(warp_column, lane_n, kLanesN, q));
  };

  float sum[kGroupsM][4][kGroupsN][4] = {};
  const auto next = [](int stage) { return stage + 1 < S::kStages ? stage + 1 : 0; };
#pragma unroll
  for (int stage = 0; stage < S::kStages - 1; ++stage) fetch(stage);
  __pipeline_wait_prior(S::kStages - 2);
  __syncthreads();  // the first tile has come for all threads
  load_values(0, 0, 0);

  int present = 0, free = S::kStages - 1;
  for (int depth = 0; depth < k; depth += S::kDepth, present = next(present), free = next(free)) {
#pragma unroll
    for (int step = 0; step < S::kDepth; ++step) {
      if (step == 0) fetch(free);  // all have done with it: they have passed the barrier of the tile before
      if (step == S::kDepth - 1) {
        __pipeline_wait_prior(S::kStages - 2);
        __syncthreads();  // the next tile has come for all threads, and all have loaded the last values of this one
      }
      if (step < S::kDepth - 1)
        load_values((step + 1) % 2, present, step + 1);
      else if (depth + S::kDepth < k)
        load_values(0, next(present), 0);
      float left[kGroupsM * 4], right[kGroupsN * 4];
      unpack(a_values[step % 2], left);
      unpack(b_values[step % 2], right);
#pragma unroll
      for (int i = 0; i < kGroupsM * 4; i += 2)
#pragma unroll
        for (int j = 0; j < kGroupsN * 4; j += 2)
#pragma unroll
          for (int corner = 0; corner < 4; ++corner) {  // of a square, around it: each shares a factor with the one before
            const int row = i + corner / 2, column = j + (corner / 2 ^ corner % 2);
            sum[row / 4][row % 4][column / 4][column % 4] += left[row] * right[column];
          }
    }
  }
#pragma unroll
  for (int p = 0; p < kGroupsM; ++p)
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int row = row0 + my_offset(warp_row, lane_m, kLanesM, p) + r;
      if (row >= m) continue;
#pragma unroll
      for (int q = 0; q < kGroupsN; ++q)
        store4<kAligned>(c + static_cast<int64_t>(row) * n, column0 + my_offset(warp_column, lane_n, kLanesN, q), n, sum[p][r][q]);
    }
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const int64_t tiles = (m + Tuned::kTileM - 1) / Tuned::kTileM * ((n + Tuned::kTileN - 1) / Tuned::kTileN);
  const auto kernel = n % 4 == 0 ? sgemm<Tuned, true> : sgemm<Tuned, false>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tuned::kSharedBytes);
  kernel<<<static_cast<unsigned>(tiles), Tuned::kThreads, Tuned::kSharedBytes, stream>>>(
      a, b, c, static_cast<int>(m), static_cast<int>(k), static_cast<int>(n));
}
