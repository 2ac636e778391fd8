// Rung 10: the last percents: both operands by 16-byte copies, several stages, and sizes chosen by measurement.
//
// Changed     A is no longer transposed: it lies in shared memory as in memory, copied 16 bytes at a time, its vectors permuted
//             within rows. A thread computes 8 x 16 results and reads A along k, one float4 of each row for four steps. More
//             stages are under way, tiles are taken in bands, and every size is a parameter: `Tuned` is the best of those
//             that scripts/tune_sgemm.sh timed.
// Why         rung 9 copies A with 4-byte instructions, 16 of its 20 copies a thread and tile; here it is 8 copies in all. The
//             loads from shared memory stay 6 vectors for 128 multiply-adds. Blocks that run together then share rows
//             of A and columns of B in the L2 cache.
// Prediction  issue slots: 94 % of all instructions are multiply-adds now. 1.05x to 1.1x rung 9; 95 % of cuBLAS.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes (copies beyond an edge write zeros).
// Launch      one block a tile in one dimension, in bands of kBand tile rows; threads, tile and stages as in `Tuned`.
// Resources   up to 255 registers, 128 of them sums; shared memory (tile m + tile n) * depth * 4 bytes a stage.
// Cost        2 * m * n * k FLOPs; 4 * m * n * k * (1 / tile m + 1 / tile n) bytes of global loads.
// Divides     k % 4 == 0 and n % 4 == 0 for 16-byte copies and stores; any other shape uses 4-byte ones (kAligned = false).
// Source      the stages and the bands as in CUTLASS (NVIDIA, 2017 to 2023); reading A along k is our own.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

/// Sizes of one variant: tile of a block, depth, tile of a warp, stages, blocks a multiprocessor.
template <int kTileM_, int kTileN_, int kDepth_, int kWarpM_, int kWarpN_, int kStages_, int kBlocks_>
struct Shape {
  static constexpr int kTileM = kTileM_, kTileN = kTileN_, kDepth = kDepth_, kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
  static constexpr int kStageFloats = (kTileM + kTileN) * kDepth;
  static constexpr int kSharedBytes = kStages * kStageFloats * 4;
};

using Tuned = Shape<128, 128, 16, 64, 64, 4, 2>;

constexpr int kRows = 8, kGroups = 4;  // results of a thread: 8 rows, 4 float4 of columns
constexpr int kBand = 8;               // tile rows

/// Copies kBytes to shared memory, asynchronously; writes zeros instead where the element does not exist.
template <int kBytes>
__device__ void copy_or_zero(float* to, const float* from, bool exists, const float* any_valid_address) {
  __pipeline_memcpy_async(to, exists ? from : any_valid_address, kBytes, exists ? 0 : kBytes);
}

/// Where element (row, depth) of A's tile lies. Vectors of four are permuted so that eight neighbouring rows at one depth
/// meet all 32 banks.
template <class S>
__device__ int a_offset(int row, int depth) {
  constexpr int kVectors = S::kDepth / 4, kRowsPerLine = 8 / kVectors;  // a line: all banks once
  static_assert(kVectors == 2 || kVectors == 4 || kVectors == 8, "rows divide a line of 128 bytes");
  return row * S::kDepth + (depth / 4 ^ row / kRowsPerLine % kVectors) * 4 + depth % 4;
}

/// The copies of one thread: a vector of every kStepA-th row of A's tile, and of every kStepB-th row of B's.
template <class S, bool kAligned>
struct Loader {
  static constexpr int kWidth = kAligned ? 4 : 1;  // floats a copy
  static constexpr int kAcrossA = S::kDepth / kWidth, kAcrossB = S::kTileN / kWidth;
  static constexpr int kStepA = S::kThreads / kAcrossA, kStepB = S::kThreads > kAcrossB ? S::kThreads / kAcrossB : 1;
  static constexpr int kSkipB = S::kThreads > kAcrossB ? kAcrossB : S::kThreads;  // copies of one row at a time
  static_assert(S::kTileM % kStepA == 0 && S::kDepth % kStepB == 0 && kAcrossB % kSkipB == 0, "equal shares for all threads");
  const float *a, *b;  // this thread's first elements of the next tiles
  const float* any_valid_address;
  int k, n;
  int rows_left, columns_left, depth_left;  // of the matrices, seen from the tile's first elements
  int a_row, a_depth, b_depth, b_column;    // this thread's first elements, seen from there

  __device__ Loader(const float* a_matrix, const float* b_matrix, int m, int k_, int n_, int row0, int column0)
      : any_valid_address(a_matrix), k(k_), n(n_) {
    const int thread = threadIdx.x;
    a_row = thread / kAcrossA, a_depth = thread % kAcrossA * kWidth;
    b_depth = thread / kSkipB % kStepB, b_column = thread % kSkipB * kWidth;
    a = a_matrix + static_cast<int64_t>(row0 + a_row) * k + a_depth;
    b = b_matrix + static_cast<int64_t>(b_depth) * n + column0 + b_column;
    rows_left = m - row0, columns_left = n - column0, depth_left = k;
  }

  /// Starts the copies of the next tiles. kWhole: nothing of them lies outside, so nothing is asked.
  template <bool kWhole>
  __device__ void fetch(float* a_tile, float* b_tile) {
#pragma unroll
    for (int i = 0; i < S::kTileM; i += kStepA)
      copy_or_zero<4 * kWidth>(a_tile + a_offset<S>(a_row + i, a_depth), a + static_cast<int64_t>(i) * k,
                               kWhole || (a_row + i < rows_left && a_depth < depth_left), any_valid_address);
#pragma unroll
    for (int i = 0; i < S::kDepth; i += kStepB)
#pragma unroll
      for (int j = 0; j < S::kTileN; j += kSkipB * kWidth)
        copy_or_zero<4 * kWidth>(b_tile + (b_depth + i) * S::kTileN + b_column + j, b + static_cast<int64_t>(i) * n + j,
                                 kWhole || (b_column + j < columns_left && b_depth + i < depth_left), any_valid_address);
    a += S::kDepth, b += static_cast<int64_t>(S::kDepth) * n, depth_left -= S::kDepth;
  }
};

/// Component j of v; j is known when the loop around it is unrolled.
__device__ float component(float4 v, int j) { return j == 0 ? v.x : j == 1 ? v.y : j == 2 ? v.z : v.w; }

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
  constexpr int kLanesM = S::kWarpM / kRows, kLanesN = S::kWarpN / (4 * kGroups);  // the lanes of a warp as a grid
  static_assert(kLanesM * kLanesN == 32, "a warp's tile has 4096 elements");
  extern __shared__ float4 shared[];
  const auto a_tile = [&](int stage) { return reinterpret_cast<float*>(shared) + stage * S::kStageFloats; };
  const auto b_tile = [&](int stage) { return a_tile(stage) + S::kTileM * S::kDepth; };

  // Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may be lower.
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
  const int my_row = warp / (S::kTileN / S::kWarpN) * S::kWarpM + lane / kLanesN;           // and every kLanesM-th
  const int my_column = warp % (S::kTileN / S::kWarpN) * S::kWarpN + lane % kLanesN * 4;    // and every 4 kLanesN-th

  float sum[kRows][kGroups][4] = {};
  const auto next = [](int stage) { return stage + 1 < S::kStages ? stage + 1 : 0; };
#pragma unroll
  for (int stage = 0; stage < S::kStages - 1; ++stage) fetch(stage);
  int present = 0, free = S::kStages - 1;
  for (int depth = 0; depth < k; depth += S::kDepth, present = next(present), free = next(free)) {
    __pipeline_wait_prior(S::kStages - 2);
    __syncthreads();  // this tile has come for all threads, and all have done with the one before
    fetch(free);
    const float *a_here = a_tile(present), *b_here = b_tile(present);
#pragma unroll
    for (int i = 0; i < S::kDepth; i += 4) {
      float4 a_values[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        a_values[r] = *reinterpret_cast<const float4*>(a_here + a_offset<S>(my_row + r * kLanesM, i));
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float4 b_values[kGroups];
#pragma unroll
        for (int q = 0; q < kGroups; ++q)
          b_values[q] = *reinterpret_cast<const float4*>(b_here + (i + j) * S::kTileN + my_column + q * 4 * kLanesN);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float left = component(a_values[r], j);
#pragma unroll
          for (int q = 0; q < kGroups; ++q) {
            sum[r][q][0] += left * b_values[q].x;
            sum[r][q][1] += left * b_values[q].y;
            sum[r][q][2] += left * b_values[q].z;
            sum[r][q][3] += left * b_values[q].w;
          }
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = row0 + my_row + r * kLanesM;
    if (row >= m) continue;
#pragma unroll
    for (int q = 0; q < kGroups; ++q)
      store4<kAligned>(c + static_cast<int64_t>(row) * n, column0 + my_column + q * 4 * kLanesN, n, sum[r][q]);
  }
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const int64_t tiles = (m + Tuned::kTileM - 1) / Tuned::kTileM * ((n + Tuned::kTileN - 1) / Tuned::kTileN);
  const auto kernel = k % 4 == 0 && n % 4 == 0 ? sgemm<Tuned, true> : sgemm<Tuned, false>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tuned::kSharedBytes);
  kernel<<<static_cast<unsigned>(tiles), Tuned::kThreads, Tuned::kSharedBytes, stream>>>(
      a, b, c, static_cast<int>(m), static_cast<int>(k), static_cast<int>(n));
}
