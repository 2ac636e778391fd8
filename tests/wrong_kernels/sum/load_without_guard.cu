// cause: out_of_bounds
// line: 15
// mistake: the last block reads beyond the end of x.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 512;

__global__ void init(float* total) { total[0] = 0.0f; }

__global__ void reduce(const float* x, float* total, int64_t n) {
  __shared__ float s[kThreads];
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  s[threadIdx.x] = x[i];
  __syncthreads();
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) s[threadIdx.x] += s[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(total, s[0]);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  init<<<1, 1, 0, stream>>>(total);
  reduce<<<(unsigned)((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, total, n);
}
