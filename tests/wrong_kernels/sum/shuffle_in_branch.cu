// cause: deadlock
// line: 20
// mistake: the full-mask shuffles stand inside a branch that not all lanes of the warp take.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void init(float* total) { total[0] = 0.0f; }

__global__ void sum_one_each(const float* x, float* total, int64_t n) {
  __shared__ float warp_sum[kThreads / 32];
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int lane = threadIdx.x % 32;
  if (lane == 0) warp_sum[threadIdx.x / 32] = 0.0f;
  __syncthreads();
  if (i < n) {
    float v = x[i];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if (lane == 0) warp_sum[threadIdx.x / 32] = v;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float s = 0.0f;
    for (int w = 0; w < kThreads / 32; ++w) s += warp_sum[w];
    atomicAdd(total, s);
  }
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  init<<<1, 1, 0, stream>>>(total);
  sum_one_each<<<(unsigned)((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, total, n);
}
