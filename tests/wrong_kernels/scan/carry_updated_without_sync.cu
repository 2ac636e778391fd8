// cause: race
// line: 27
// mistake: the last thread updates the carry while other threads still read it.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 128;

__global__ void scan_with_carry(const float* x, float* y, int64_t n) {
  __shared__ float warp_sum[kThreads / 32];
  __shared__ float carry;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) carry = 0.0f;
  __syncthreads();
  for (int64_t base = 0; base < n; base += kThreads) {
    const int64_t i = base + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    for (int d = 1; d < 32; d *= 2) {
      float up = __shfl_up_sync(0xffffffffu, v, d);
      if (lane >= d) v += up;
    }
    if (lane == 31) warp_sum[warp] = v;
    __syncthreads();
    for (int w = 0; w < warp; ++w) v += warp_sum[w];
    if (i < n) y[i] = v + carry;
    if (threadIdx.x == kThreads - 1) carry += v;
    __syncthreads();
  }
}

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  scan_with_carry<<<1, kThreads, 0, stream>>>(x, y, n);
}
