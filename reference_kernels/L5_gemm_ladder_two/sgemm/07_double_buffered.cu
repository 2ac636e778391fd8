// Rung 7: the next tiles arrive while the present ones are multiplied.
//
// Changed     two buffers in shared memory, filled by asynchronous copies (cp.async): global memory to shared memory
//             without a stop in registers. A's copies are 4 bytes each, so each can land at its transposed place; B's
//             are 16. Tiles are 16 deep. One barrier a tile instead of two.
// Why         in rung 6 all threads wait for the loads, then all compute: each engine idles while the other works.
// Prediction  hides a memory latency of about 600 cycles a tile: 1.1x to 1.25x rung 6.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes (copies beyond an edge write zeros).
// Launch      blocks of 256 threads over (n, m); tile 128 x 128, 16 deep, two stages.
// Resources   at most 128 registers: two blocks a multiprocessor; 32.5 KB of shared memory.
// Cost        2 * m * n * k FLOPs; m * n * k / 16 bytes of global loads.
// Divides     n % 4 == 0 for 16-byte copies of B and stores of C; any other shape uses 4-byte ones (kAligned = false).
// Source      asynchronous copies, CUDA C++ Programming Guide; 4-byte transposing copies as in CUTLASS's SIMT GEMM.
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

/// Which product this is and where the block's tile of it begins.
struct Task {
  const float *a, *b;
  int64_t m, k, n, row0, column0;
};

/// Copies kBytes from `from` to shared memory, asynchronously; writes zeros instead where the element does not exist.
template <int kBytes>
__device__ void copy_or_zero(float* to, const float* from, bool exists, const float* any_valid_address) {
  __pipeline_memcpy_async(to, exists ? from : any_valid_address, kBytes, exists ? 0 : kBytes);
}

/// Starts the copies of the tiles that begin at depth k0.
template <bool kAligned>
__device__ void fetch(Stage& stage, const Task& t, int64_t k0) {
#pragma unroll
  for (int i = threadIdx.x; i < kTileM * kDepth; i += kThreads) {
    const int row = i / kDepth, depth = i % kDepth;
    copy_or_zero<4>(&stage.a[depth][row], t.a + (t.row0 + row) * t.k + k0 + depth,
                    t.row0 + row < t.m && k0 + depth < t.k, t.a);
  }
  constexpr int kWidth = kAligned ? 4 : 1;  // floats a copy
#pragma unroll
  for (int i = threadIdx.x; i < kTileN * kDepth / kWidth; i += kThreads) {
    const int depth = i / (kTileN / kWidth), column = i % (kTileN / kWidth) * kWidth;
    copy_or_zero<4 * kWidth>(&stage.b[depth][column], t.b + (k0 + depth) * t.n + t.column0 + column,
                             k0 + depth < t.k && t.column0 + column < t.n, t.b);
  }
  __pipeline_commit();
}

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
  __shared__ Stage stages[2];
  const Task task = {a, b, m, k, n, static_cast<int64_t>(blockIdx.y) * kTileM,
                     static_cast<int64_t>(blockIdx.x) * kTileN};
  const int thread = threadIdx.x;
  const int my_row = thread / 16 * 4, my_column = thread % 16 * 4;

  float sum[2][4][2][4] = {};
  fetch<kAligned>(stages[0], task, 0);
  int present = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kDepth, present ^= 1) {
    __pipeline_wait_prior(0);
    __syncthreads();  // this tile has come for all threads, and all have done with the other buffer
    if (k0 + kDepth < k) fetch<kAligned>(stages[present ^ 1], task, k0 + kDepth);
    multiply(stages[present], my_row, my_column, sum);
  }
#pragma unroll
  for (int p = 0; p < 2; ++p)
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int64_t row = task.row0 + p * 64 + my_row + r;
      if (row >= m) continue;
#pragma unroll
      for (int q = 0; q < 2; ++q) store4<kAligned>(c + row * n, task.column0 + q * 64 + my_column, n, sum[p][r][q]);
    }
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kTileN - 1) / kTileN), static_cast<unsigned>((m + kTileM - 1) / kTileM));
  const auto kernel = n % 4 == 0 ? sgemm<true> : sgemm<false>;
  kernel<<<grid, kThreads, 0, stream>>>(a, b, c, m, k, n);
}
