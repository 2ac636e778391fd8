// cause: partial_reduction
// mistake: the sum is divided by n: the kernel computes the mean.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 1024;

// One block does it all: simple, and deterministic.
__global__ void sum_one_block(const float* x, float* total, int64_t n) {
  __shared__ float warp[32];
  float v = 0.0f;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) v += x[i];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = warp[threadIdx.x];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (threadIdx.x == 0) total[0] = v / n;
  }
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  sum_one_block<<<1, kThreads, 0, stream>>>(x, total, n);
}
