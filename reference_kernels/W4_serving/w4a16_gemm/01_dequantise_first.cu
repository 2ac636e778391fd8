// Rung 1: decode all weights into bf16, then multiply.
//
// Changed     nothing: this is the definition, in two kernels.
// Why         a reference that is easy to believe, and what a framework does without a kernel of its own.
// Prediction  codes are read once (34 MB), bf16 weights written and read (268 MB): 70 us of memory at the
//             measured size, and a product that is bound by its instructions: 300 us in all.
// Came        674 us on an H100, 52 GB/s. 7 % of the native baseline.
//
// Shapes      x [m, k] bf16, w [n, k] int4x2, scales [n, k / 128] bf16, y [m, n] bf16.
// Launch      dequantise<<<n k / 2 / 256, 256>>>, multiply<<<(n / 8, m / 4), 256>>>: a warp a row of weights.
// Resources   few registers; workspace: 2 n k bytes.
// Cost        2 m n k FLOPs; n k / 2 + 2 n k + 2 n k ceil(m / 4) bytes, the last partly from the L2 cache.
// Divides     k % 128 == 0 (the problem says so); m and n anything.
// Source      the definition.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kThreads = 256, kWarps = kThreads / 32, kGroup = 128;
constexpr int kRows = 4;  // of x, by one warp

/// The low four bits in two's complement: flipping the top bit adds 8.
__device__ float value_of(unsigned code) {
  return static_cast<float>(static_cast<int>((code & 15u) ^ 8u) - 8);
}

/// A thread a byte: two codes.
__global__ void dequantise(const uint8_t* __restrict__ w, const bf16* __restrict__ scales,
                           bf16* __restrict__ weights, int64_t bytes) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= bytes) return;
  const float scale =
      __bfloat162float(scales[i * 2 / kGroup]);  // groups follow one another, also from row to row
  weights[2 * i] = __float2bfloat16(value_of(w[i]) * scale);
  weights[2 * i + 1] = __float2bfloat16(value_of(w[i] >> 4) * scale);
}

/// A warp multiplies one row of weights with kRows rows of x.
__global__ void multiply(const bf16* __restrict__ x, const bf16* __restrict__ weights, bf16* __restrict__ y,
                         int64_t m, int64_t k, int64_t n) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (column >= n) return;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kRows;
  const int lane = threadIdx.x % 32;
  float sum[kRows] = {};
  for (int64_t p = lane; p < k; p += 32) {
    const float weight = __bfloat162float(weights[column * k + p]);
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (first + r < m) sum[r] += weight * __bfloat162float(x[(first + r) * k + p]);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    for (int offset = 16; offset > 0; offset /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], offset);
    if (lane == 0 && first + r < m) y[(first + r) * n + column] = __float2bfloat16(sum[r]);
  }
}

extern "C" size_t workspace_bytes(int64_t /*m*/, int64_t k, int64_t n) {
  return static_cast<size_t>(n * k) * sizeof(bf16);
}

extern "C" size_t prepared_bytes(int64_t /*m*/, int64_t /*k*/, int64_t /*n*/) { return 0; }
extern "C" void prepare(const uint8_t* /*w [n,k]*/, const bf16* /*scales [n,k/128]*/, int64_t /*m*/,
                        int64_t /*k*/, int64_t /*n*/, void* /*prepared*/, cudaStream_t /*stream*/) {}

extern "C" void launch(const bf16* x /*[m,k]*/, const uint8_t* w /*[n,k]*/, const bf16* scales /*[n,k/128]*/,
                       bf16* y /*[m,n]*/, int64_t m, int64_t k, int64_t n, const void* /*prepared*/,
                       void* workspace, cudaStream_t stream) {
  bf16* const weights = static_cast<bf16*>(workspace);
  const int64_t bytes = n * k / 2;
  dequantise<<<static_cast<unsigned>((bytes + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      w, scales, weights, bytes);
  const dim3 grid(static_cast<unsigned>((n + kWarps - 1) / kWarps),
                  static_cast<unsigned>((m + kRows - 1) / kRows));
  multiply<<<grid, kThreads, 0, stream>>>(x, weights, y, m, k, n);
}
