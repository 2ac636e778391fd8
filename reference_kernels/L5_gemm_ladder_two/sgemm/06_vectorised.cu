// Rung 6: every access moves 16 bytes, in global and in shared memory.
//
// Changed     A is transposed on its way into shared memory, so that a thread's eight values for one k lie
//             side by side and come with two float4 loads instead of eight scalar ones; B, C and the global
//             loads use float4, too. A thread's 8 x 8 results are four 4 x 4 squares, 64 apart: neighbouring
//             threads then read neighbouring float4 of B, and no two of them meet in a bank.
// Why         rung 5 issues 16 load instructions for 64 multiply-adds; load issue, not load bytes, is in the
//             way.
// Prediction  4 load instructions for 64 multiply-adds: 1.2x to 1.4x rung 5. The transposing stores
//             now meet in banks, two by two.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes (the tile is filled up with zeros at the
//             edges).
// Launch      blocks of 256 threads over (n, m); tile 128 x 128, 8 deep.
// Resources   at most 128 registers: two blocks per multiprocessor; 8 KB of shared memory.
// Cost        2 * m * n * k FLOPs; m * n * k / 16 bytes of global loads.
// Divides     k % 4 == 0 and n % 4 == 0 for 16-byte global accesses (rows start on 16 bytes only then); any
//             other shape runs the same kernel with scalar ones (kAligned = false).
// Source      S. Boehm's SGEMM article, 2022 (transposed A); S. Gray, "maxas: SGEMM", 2014 (the 4 x 4
//             squares).
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTileM = 128, kTileN = 128, kDepth = 8;
constexpr int kThreads = 256;
static_assert(kTileM * kDepth == 4 * kThreads && kTileN * kDepth == 4 * kThreads, "one float4 of A and of B a thread");

/// Elements column … column + 3 of a row that has `limit` of them; those past the end are 0.
template <bool kAligned>
__device__ float4 load4(const float* row, int64_t column, int64_t limit) {
  if (kAligned && column < limit) return *reinterpret_cast<const float4*>(row + column);
  return make_float4(column < limit ? row[column] : 0.0f, column + 1 < limit ? row[column + 1] : 0.0f,
                     column + 2 < limit ? row[column + 2] : 0.0f, column + 3 < limit ? row[column + 3] : 0.0f);
}

template <bool kAligned>
__device__ void store4(float* row, int64_t column, int64_t limit, const float (&v)[4]) {
  if (kAligned && column < limit) {
    *reinterpret_cast<float4*>(row + column) = make_float4(v[0], v[1], v[2], v[3]);
  } else {
    for (int i = 0; i < 4; ++i)
      if (column + i < limit) row[column + i] = v[i];
  }
}

template <bool kAligned>
__global__ void __launch_bounds__(kThreads, 2)
    sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int64_t m, int64_t k,
          int64_t n) {
  __shared__ __align__(16) float a_tile[kDepth][kTileM];  // transposed
  __shared__ __align__(16) float b_tile[kDepth][kTileN];
  const int thread = threadIdx.x;
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTileM, column0 = static_cast<int64_t>(blockIdx.x) * kTileN;
  const int a_row = thread / 2, a_depth = thread % 2 * 4;         // this thread's float4 of A
  const int b_depth = thread / 32, b_column = thread % 32 * 4;    // … and of B
  const int my_row = thread / 16 * 4, my_column = thread % 16 * 4;  // first of its 4 x 4 squares
  const float4 zero = make_float4(0, 0, 0, 0);

  float sum[2][4][2][4] = {};  // [square along m][row][square along n][column]
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const float4 a4 = row0 + a_row < m ? load4<kAligned>(a + (row0 + a_row) * k, k0 + a_depth, k) : zero;
    const float4 b4 = k0 + b_depth < k ? load4<kAligned>(b + (k0 + b_depth) * n, column0 + b_column, n) : zero;
    a_tile[a_depth + 0][a_row] = a4.x;
    a_tile[a_depth + 1][a_row] = a4.y;
    a_tile[a_depth + 2][a_row] = a4.z;
    a_tile[a_depth + 3][a_row] = a4.w;
    *reinterpret_cast<float4*>(&b_tile[b_depth][b_column]) = b4;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float4 a_values[2], b_values[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        a_values[half] = *reinterpret_cast<const float4*>(&a_tile[i][half * 64 + my_row]);
        b_values[half] = *reinterpret_cast<const float4*>(&b_tile[i][half * 64 + my_column]);
      }
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        const float left[4] = {a_values[p].x, a_values[p].y, a_values[p].z, a_values[p].w};
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
          for (int q = 0; q < 2; ++q) {
            sum[p][r][q][0] += left[r] * b_values[q].x;
            sum[p][r][q][1] += left[r] * b_values[q].y;
            sum[p][r][q][2] += left[r] * b_values[q].z;
            sum[p][r][q][3] += left[r] * b_values[q].w;
          }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int p = 0; p < 2; ++p)
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int64_t row = row0 + p * 64 + my_row + r;
      if (row >= m) continue;
#pragma unroll
      for (int q = 0; q < 2; ++q) store4<kAligned>(c + row * n, column0 + q * 64 + my_column, n, sum[p][r][q]);
    }
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kTileN - 1) / kTileN), static_cast<unsigned>((m + kTileM - 1) / kTileM));
  const auto kernel = k % 4 == 0 && n % 4 == 0 ? sgemm<true> : sgemm<false>;
  kernel<<<grid, kThreads, 0, stream>>>(a, b, c, m, k, n);
}
