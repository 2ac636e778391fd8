// Rung 4: eight loads in flight for each thread, a row split over the warps of a block.
//
// Changed     a block of 256 threads takes four rows. In one step a thread loads one vector of x and a vector
//             of each of the four rows; two steps are under way at the same time. The sums of the eight warps
//             are added up once, at the end. x comes from the L1 cache; `a` is streamed past it.
// Why         in rung 3 a warp waits for nearly every load, and the block waits for x before it asks for `a`.
//             Here a thread has 8 * 16 bytes of `a` in flight: 32 KB a block, 128 KB a
//             multiprocessor, where 33 KB are needed. One load of x serves four rows.
// Prediction  98 % of a copy: 128 us at the measured size. At 8192 squared the start and the end of the
//             kernel count 4 us of 35.
// Came        121 us, 108 % of a copy, 1.07x cuBLAS: reads alone are faster than a copy.
//
// Shapes      a [m, k], x [k], y [m], bf16, row-major; any m, any k.
// Launch      <<<m / 4, 256>>>.
// Resources   56 registers (four blocks a multiprocessor); 128 bytes of shared memory.
// Cost        2 * m * k FLOPs; 2 * m * k bytes, and a quarter of that from the L1 cache for x.
// Divides     k % 8 == 0 for the fast kernel; any other k takes the general one.
// Source      Little's law (bytes in flight = latency x bandwidth); V. Volkov, "Better Performance at Lower
//             Occupancy", 2010.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWarps = 8, kThreads = kWarps * 32;
constexpr int kRows = 4;   // of a block
constexpr int kSteps = 2;  // under way at the same time

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

__device__ float dot(uint4 a, uint4 x, float sum) {
  sum = fmaf(low(a.x), low(x.x), sum), sum = fmaf(high(a.x), high(x.x), sum);
  sum = fmaf(low(a.y), low(x.y), sum), sum = fmaf(high(a.y), high(x.y), sum);
  sum = fmaf(low(a.z), low(x.z), sum), sum = fmaf(high(a.z), high(x.z), sum);
  return fmaf(high(a.w), high(x.w), fmaf(low(a.w), low(x.w), sum));
}

__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__global__ void __launch_bounds__(kThreads, 3)
    gemv(const uint4* __restrict__ a, const uint4* __restrict__ x, __nv_bfloat16* __restrict__ y, int64_t m,
         int vectors) {
  __shared__ float partial[kRows][kWarps];
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kRows;
  const uint4* row[kRows];  // a row behind the last one is read as the last one, and not stored
#pragma unroll
  for (int r = 0; r < kRows; ++r) row[r] = a + min(first_row + r, m - 1) * vectors;

  float sum[kRows] = {};
  int i = threadIdx.x;
  for (; i + (kSteps - 1) * kThreads < vectors; i += kSteps * kThreads) {
    uint4 columns[kSteps], weights[kSteps][kRows];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) weights[s][r] = __ldcs(row[r] + i + s * kThreads);
      columns[s] = x[i + s * kThreads];
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int r = 0; r < kRows; ++r) sum[r] = dot(weights[s][r], columns[s], sum[r]);
  }
  for (; i < vectors; i += kThreads) {
    const uint4 columns = x[i];
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] = dot(__ldcs(row[r] + i), columns, sum[r]);
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    sum[r] = warp_sum(sum[r]);
    if (threadIdx.x % 32 == 0) partial[r][threadIdx.x / 32] = sum[r];
  }
  __syncthreads();
  const int r = threadIdx.x;
  if (r >= kRows || first_row + r >= m) return;
  float total = 0;
  for (int warp = 0; warp < kWarps; ++warp) total += partial[r][warp];
  y[first_row + r] = __float2bfloat16(total);
}

/// Any k: a warp a row, element by element.
__global__ void gemv_ragged(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ x,
                            __nv_bfloat16* __restrict__ y, int64_t m, int64_t k) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= m) return;
  const int lane = threadIdx.x % 32;
  float sum = 0;
  for (int64_t j = lane; j < k; j += 32) sum += __bfloat162float(a[row * k + j]) * __bfloat162float(x[j]);
  sum = warp_sum(sum);
  if (lane == 0) y[row] = __float2bfloat16(sum);
}

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* x /*[k]*/,
                       __nv_bfloat16* y /*[m]*/, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  if (k % 8 != 0) {
    gemv_ragged<<<static_cast<unsigned>((m + kWarps - 1) / kWarps), kThreads, 0, stream>>>(a, x, y, m, k);
    return;
  }
  gemv<<<static_cast<unsigned>((m + kRows - 1) / kRows), kThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(a), reinterpret_cast<const uint4*>(x), y, m, static_cast<int>(k / 8));
}
