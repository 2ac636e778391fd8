// Rung 5: a thread computes an 8 x 8 square of results.
//
// Changed     the tile of C is 128 x 128 for 256 threads. For each step along k a thread loads 8 values of A
//             and 8 of B into registers and makes 64 multiply-adds of them.
// Why         rung 4 needs 9 shared-memory loads for 8 multiply-adds. A square has the best ratio of area to
//             edge.
// Prediction  16 loads for 64 multiply-adds: a quarter of a load each instead of 1.1. About 2x rung 4.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes (the tile is filled up with zeros at the
//             edges).
// Launch      blocks of 256 threads over (n, m); tile 128 x 128, 8 deep.
// Resources   at most 128 registers (64 of them sums): two blocks per multiprocessor; 8 KB of shared memory.
// Cost        2 * m * n * k FLOPs; m * n * k / 16 bytes of global loads.
// Divides     each thread loads 4 floats of A and 4 of B; 8 divides both sides of the tile.
// Source      V. Volkov, "Better Performance at Lower Occupancy", GTC 2010: fewer threads with more work
//             each.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTileM = 128, kTileN = 128, kDepth = 8;
constexpr int kSide = 8;  // results a thread, along m and along n
constexpr int kThreads = (kTileM / kSide) * (kTileN / kSide);
static_assert(kTileM * kDepth % kThreads == 0 && kTileN * kDepth % kThreads == 0, "equal shares of the loads");

__global__ void __launch_bounds__(kThreads, 2)
    sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int k, int n) {
  __shared__ float a_tile[kTileM][kDepth];
  __shared__ float b_tile[kDepth][kTileN];
  const int thread = threadIdx.x;
  const int row0 = blockIdx.y * kTileM, column0 = blockIdx.x * kTileN;
  a += static_cast<int64_t>(row0) * k;
  b += column0;
  const int my_row = thread / (kTileN / kSide) * kSide, my_column = thread % (kTileN / kSide) * kSide;

  float sum[kSide][kSide] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth, a += kDepth, b += static_cast<int64_t>(kDepth) * n) {
#pragma unroll
    for (int i = thread; i < kTileM * kDepth; i += kThreads) {
      const int row = i / kDepth, depth = i % kDepth;
      a_tile[row][depth] = row0 + row < m && k0 + depth < k ? a[static_cast<int64_t>(row) * k + depth] : 0.0f;
    }
#pragma unroll
    for (int i = thread; i < kTileN * kDepth; i += kThreads) {
      const int depth = i / kTileN, column = i % kTileN;
      b_tile[depth][column] =
          k0 + depth < k && column0 + column < n ? b[static_cast<int64_t>(depth) * n + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll 2  // the compiler would fetch all 8 x 8 values of A at once and run out of registers
    for (int i = 0; i < kDepth; ++i) {
      float a_values[kSide], b_values[kSide];
#pragma unroll
      for (int s = 0; s < kSide; ++s) a_values[s] = a_tile[my_row + s][i];
#pragma unroll
      for (int s = 0; s < kSide; ++s) b_values[s] = b_tile[i][my_column + s];
#pragma unroll
      for (int r = 0; r < kSide; ++r)
#pragma unroll
        for (int s = 0; s < kSide; ++s) sum[r][s] += a_values[r] * b_values[s];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kSide; ++r) {
    const int row = row0 + my_row + r;
    if (row >= m) break;
#pragma unroll
    for (int s = 0; s < kSide; ++s)
      if (column0 + my_column + s < n) c[static_cast<int64_t>(row) * n + column0 + my_column + s] = sum[r][s];
  }
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kTileN - 1) / kTileN), static_cast<unsigned>((m + kTileM - 1) / kTileM));
  sgemm<<<grid, kThreads, 0, stream>>>(a, b, c, static_cast<int>(m), static_cast<int>(k), static_cast<int>(n));
}
