// Rung 4: a thread computes a column of eight results.
//
// Changed     the tile of C is 64 x 64 for 512 threads, so each thread owns 8 results below one another and
//             keeps them in registers. A value of B is loaded once from shared memory and used for all eight.
// Why         rung 3 spends two shared-memory loads on each multiply-add, and those loads are the limit.
// Prediction  9 loads for 8 multiply-adds instead of 16: about 2x to 3x rung 3 (the loop runs along k, too,
//             and larger tiles halve the global traffic).
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes (the tile is filled up with zeros at the
//             edges).
// Launch      blocks of 512 threads over (n, m); tile 64 x 64, 8 deep.
// Resources   58 registers (two blocks per multiprocessor); 4 KB of shared memory.
// Cost        2 * m * n * k FLOPs; m * n * k / 8 bytes of global loads.
// Divides     kTileM * kDepth == kTileN * kDepth == threads: each thread loads one float of A and one of B.
// Source      register tiling; the 1-D step as in S. Boehm, "How to Optimize a CUDA Matmul Kernel", 2022.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTileM = 64, kTileN = 64, kDepth = 8;
constexpr int kResults = 8;  // a thread, along m
constexpr int kThreads = kTileM * kTileN / kResults;
static_assert(kTileM * kDepth == kThreads && kTileN * kDepth == kThreads, "one float of A and of B a thread");

__global__ void __launch_bounds__(kThreads)
    sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int k, int n) {
  __shared__ float a_tile[kTileM][kDepth];
  __shared__ float b_tile[kDepth][kTileN];
  const int thread = threadIdx.x;
  const int row0 = blockIdx.y * kTileM, column0 = blockIdx.x * kTileN;
  // What this thread loads …
  const int a_row = thread / kDepth, a_depth = thread % kDepth;
  const int b_depth = thread / kTileN, b_column = thread % kTileN;
  // … and what it computes: rows first_row … first_row + 7 of one column.
  const int first_row = thread / kTileN * kResults, column = thread % kTileN;
  const bool a_row_exists = row0 + a_row < m, b_column_exists = column0 + b_column < n;
  a += static_cast<int64_t>(row0 + a_row) * k + a_depth;
  b += static_cast<int64_t>(b_depth) * n + column0 + b_column;

  float sum[kResults] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth, a += kDepth, b += static_cast<int64_t>(kDepth) * n) {
    a_tile[a_row][a_depth] = a_row_exists && k0 + a_depth < k ? *a : 0.0f;
    b_tile[b_depth][b_column] = b_column_exists && k0 + b_depth < k ? *b : 0.0f;
    __syncthreads();
#pragma unroll 4  // unrolled fully, the compiler fetches all 8 x 8 values of A at once and runs out of registers
    for (int i = 0; i < kDepth; ++i) {
      const float b_value = b_tile[i][column];
#pragma unroll
      for (int r = 0; r < kResults; ++r) sum[r] += a_tile[first_row + r][i] * b_value;
    }
    __syncthreads();
  }
  if (column0 + column >= n) return;
#pragma unroll
  for (int r = 0; r < kResults; ++r)
    if (row0 + first_row + r < m) c[static_cast<int64_t>(row0 + first_row + r) * n + column0 + column] = sum[r];
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kTileN - 1) / kTileN), static_cast<unsigned>((m + kTileM - 1) / kTileM));
  sgemm<<<grid, kThreads, 0, stream>>>(a, b, c, static_cast<int>(m), static_cast<int>(k), static_cast<int>(n));
}
