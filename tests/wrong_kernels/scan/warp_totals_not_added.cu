// cause: partial_reduction
// mistake: a thread adds the total of the warp before it only, not those of all warps before it.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 1024;

__global__ void scan_1024(const float* x, float* y, int64_t n) {
  __shared__ float totals[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float carry = 0.0f;
  for (int64_t base = 0; base < n; base += kThreads) {
    const int64_t i = base + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    for (int d = 1; d < 32; d *= 2) {
      const float up = __shfl_up_sync(0xffffffffu, v, d);
      if (lane >= d) v += up;
    }
    if (lane == 31) totals[warp] = v;
    __syncthreads();
    float all = 0.0f;
    for (int w = 0; w < 32; ++w) {
      if (w == warp - 1) v += totals[w];
      all += totals[w];
    }
    if (i < n) y[i] = carry + v;
    carry += all;
    __syncthreads();
  }
}

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  scan_1024<<<1, kThreads, 0, stream>>>(x, y, n);
}
