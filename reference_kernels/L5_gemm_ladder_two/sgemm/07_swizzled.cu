// Rung 7: twice as deep a tile, because its stores no longer meet in banks.
//
// Changed     a tile is 16 deep instead of 8, two float4 of A and of B a thread. Element (depth, row) of the
//             transposed tile of A lies at row ^ 8 * (depth / 4 % 4): a permutation of the 32 banks that
//             differs for each four depths.
// Why         half as many barriers for the same work. But a warp now stores 8 rows of A at four depths, and
//             without the permutation all four would fall into the same 8 banks: four wavefronts where one
//             would do. Padding, as in rung 3 of the transpose, cannot help: rows must stay on 16 bytes, and
//             4 * (128 + 4 j) floats reach only two of the four places.
// Prediction  the barriers were about a tenth of rung 6: 1.03x to 1.1x. (Without the deeper tile, banks alone
//             gave nothing here: 3.60 ms instead of 3.59 ms on an H200. Removing a conflict gains no more
//             than its share of the time.)
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes (the tile is filled up with zeros at the
//             edges).
// Launch      blocks of 256 threads over (n, m); tile 128 x 128, 16 deep.
// Resources   at most 128 registers: two blocks per multiprocessor; 16 KB of shared memory.
// Cost        2 * m * n * k FLOPs; m * n * k / 16 bytes of global loads.
// Divides     k % 4 == 0 and n % 4 == 0 for 16-byte global accesses (rows start on 16 bytes only then); any
//             other shape runs the same kernel with scalar ones (kAligned = false).
// Source      the permutation as in CUTLASS's shared-memory layouts (NVIDIA); S. Boehm's SGEMM article, 2022
//             (transposed A); S. Gray, "maxas: SGEMM", 2014 (the 4 x 4 squares).
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTileM = 128, kTileN = 128, kDepth = 16;
constexpr int kThreads = 256;
constexpr int kLoads = 2;  // float4 of A and of B a thread
static_assert(kTileM * kDepth == 4 * kThreads * kLoads && kTileN * kDepth == 4 * kThreads * kLoads, "equal shares");

/// Where row `row` of A lies in line `depth` of its transposed tile. Four neighbouring rows stay together, on
/// 16 bytes.
__device__ int swizzled(int depth, int row) { return row ^ depth / 4 % 4 * 8; }

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
  __shared__ __align__(16) float a_tile[kDepth][kTileM];  // transposed, swizzled
  __shared__ __align__(16) float b_tile[kDepth][kTileN];
  const int thread = threadIdx.x;
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTileM, column0 = static_cast<int64_t>(blockIdx.x) * kTileN;
  const int a_row = thread / 4, a_depth = thread % 4 * 4;         // this thread's first float4 of A
  const int b_depth = thread / 32, b_column = thread % 32 * 4;    // … and of B
  const int my_row = thread / 16 * 4, my_column = thread % 16 * 4;  // first of its 4 x 4 squares
  const float4 zero = make_float4(0, 0, 0, 0);

  float sum[2][4][2][4] = {};  // [square along m][row][square along n][column]
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    float4 a4[kLoads], b4[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int64_t row = row0 + a_row + j * (kTileM / kLoads), depth = k0 + b_depth + j * (kDepth / kLoads);
      a4[j] = row < m ? load4<kAligned>(a + row * k, k0 + a_depth, k) : zero;
      b4[j] = depth < k ? load4<kAligned>(b + depth * n, column0 + b_column, n) : zero;
    }
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int at = swizzled(a_depth, a_row + j * (kTileM / kLoads));
      a_tile[a_depth + 0][at] = a4[j].x;
      a_tile[a_depth + 1][at] = a4[j].y;
      a_tile[a_depth + 2][at] = a4[j].z;
      a_tile[a_depth + 3][at] = a4[j].w;
      *reinterpret_cast<float4*>(&b_tile[b_depth + j * (kDepth / kLoads)][b_column]) = b4[j];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float4 a_values[2], b_values[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        a_values[half] = *reinterpret_cast<const float4*>(&a_tile[i][swizzled(i, half * 64 + my_row)]);
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
