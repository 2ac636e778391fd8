// Rung 8: the next tiles arrive while the present ones are multiplied.
//
// Changed     two buffers in shared memory, filled by asynchronous copies (cp.async): global memory to shared
//             memory without a stop in registers. A's copies are 4 bytes each, so each can land at its
//             transposed place; B's are 16. One barrier a tile instead of two.
// Why         in rung 7 all threads wait for the loads, then all compute: each engine idles while the other
//             works.
// Prediction  hides a memory latency of about 600 cycles a tile: 1.1x to 1.25x rung 7.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes (copies beyond an edge write zeros).
// Launch      blocks of 256 threads over (n, m); tile 128 x 128, 16 deep, two stages.
// Resources   at most 128 registers: two blocks per multiprocessor; 32.5 KB of shared memory.
// Cost        2 * m * n * k FLOPs; m * n * k / 16 bytes of global loads.
// Divides     n % 4 == 0 for 16-byte copies of B and stores of C; any other shape uses 4-byte ones (kAligned
//             = false).
// Source      asynchronous copies, CUDA C++ Programming Guide; 4-byte transposing copies as in CUTLASS's SIMT
//             GEMM.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTileM = 128, kTileN = 128, kDepth = 16;
constexpr int kThreads = 256;
constexpr int kPad = 4;  // keeps rows of the transposed tile on 16 bytes and spreads the transposing copies over banks

struct __align__(16) Stage {
  float a[kDepth][kTileM + kPad];  // transposed
  float b[kDepth][kTileN];
};

/// Copies kBytes to shared memory, asynchronously; writes zeros instead where the element does not exist.
template <int kBytes>
__device__ void copy_or_zero(float* to, const float* from, bool exists, const float* any_valid_address) {
  __pipeline_memcpy_async(to, exists ? from : any_valid_address, kBytes, exists ? 0 : kBytes);
}

/// The loads of one thread: every kStepA-th row of A's tile at one depth, every kStepB-th row of B's tile at
/// one column.
template <bool kAligned>
struct Loader {
  static constexpr int kWidth = kAligned ? 4 : 1;  // floats of B a copy
  static constexpr int kStepA = kThreads / kDepth, kStepB = kThreads / (kTileN / kWidth);
  static_assert(kTileM % kStepA == 0 && kDepth % kStepB == 0, "equal shares for all threads");
  const float *a, *b;  // this thread's first elements of the next tiles
  const float* any_valid_address;
  int k, n;
  int rows_left, columns_left, depth_left;  // of the matrices, seen from this thread's first elements
  int a_row, a_depth, b_depth, b_column;    // where those lie in the tiles

  __device__ Loader(const float* a_matrix, const float* b_matrix, int m, int k_, int n_, int row0, int column0)
      : any_valid_address(a_matrix), k(k_), n(n_) {
    const int thread = threadIdx.x;
    a_row = thread / kDepth, a_depth = thread % kDepth;
    b_depth = thread / (kTileN / kWidth), b_column = thread % (kTileN / kWidth) * kWidth;
    a = a_matrix + static_cast<int64_t>(row0 + a_row) * k + a_depth;
    b = b_matrix + static_cast<int64_t>(b_depth) * n + column0 + b_column;
    rows_left = m - row0 - a_row, columns_left = n - column0 - b_column, depth_left = k;
  }

  /// Starts the copies of the next tiles. kWhole: all of them lie inside, so nothing is checked.
  template <bool kWhole>
  __device__ void fetch(Stage& stage) {
#pragma unroll
    for (int i = 0; i < kTileM; i += kStepA)
      copy_or_zero<4>(&stage.a[a_depth][a_row + i], a + i * k, kWhole || (i < rows_left && a_depth < depth_left),
                      any_valid_address);
#pragma unroll
    for (int i = 0; i < kDepth; i += kStepB)
      copy_or_zero<4 * kWidth>(&stage.b[b_depth + i][b_column], b + i * n,
                               kWhole || (columns_left > 0 && b_depth + i < depth_left), any_valid_address);
    __pipeline_commit();
    a += kDepth, b += static_cast<int64_t>(kDepth) * n, depth_left -= kDepth;
  }
};

/// Multiplies one stage into the thread's four 4 x 4 squares, [square along m][row][square along n][column].
__device__ void multiply(const Stage& stage, int my_row, int my_column, float (&sum)[2][4][2][4]) {
#pragma unroll
  for (int i = 0; i < kDepth; ++i) {
    float4 a_values[2], b_values[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      a_values[half] = *reinterpret_cast<const float4*>(&stage.a[i][half * 64 + my_row]);
      b_values[half] = *reinterpret_cast<const float4*>(&stage.b[i][half * 64 + my_column]);
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

template <bool kAligned>
__global__ void __launch_bounds__(kThreads, 2)
    sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int k, int n) {
  __shared__ Stage stages[2];
  const int row0 = blockIdx.y * kTileM, column0 = blockIdx.x * kTileN;
  const bool inside = row0 + kTileM <= m && column0 + kTileN <= n;
  Loader<kAligned> loader(a, b, m, k, n, row0, column0);
  const auto fetch = [&](Stage& stage) {
    if (inside && loader.depth_left >= kDepth)
      loader.template fetch<true>(stage);
    else
      loader.template fetch<false>(stage);
  };
  const int thread = threadIdx.x;
  const int my_row = thread / 16 * 4, my_column = thread % 16 * 4;

  float sum[2][4][2][4] = {};
  fetch(stages[0]);
  int present = 0;
  for (int k0 = 0; k0 < k; k0 += kDepth, present ^= 1) {
    __pipeline_wait_prior(0);
    __syncthreads();  // this tile has come for all threads, and all have done with the other buffer
    if (k0 + kDepth < k) fetch(stages[present ^ 1]);
    multiply(stages[present], my_row, my_column, sum);
  }
#pragma unroll
  for (int p = 0; p < 2; ++p)
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int row = row0 + p * 64 + my_row + r;
      if (row >= m) continue;
#pragma unroll
      for (int q = 0; q < 2; ++q) store4<kAligned>(c + static_cast<int64_t>(row) * n, column0 + q * 64 + my_column, n, sum[p][r][q]);
    }
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kTileN - 1) / kTileN), static_cast<unsigned>((m + kTileM - 1) / kTileM));
  const auto kernel = n % 4 == 0 ? sgemm<true> : sgemm<false>;
  kernel<<<grid, kThreads, 0, stream>>>(a, b, c, static_cast<int>(m), static_cast<int>(k), static_cast<int>(n));
}
