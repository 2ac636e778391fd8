// cause: race
// line: 21
// mistake: all blocks add to total[0] by a plain +=, and additions get lost.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void clear(float* total) { total[0] = 0.0f; }

__global__ void sum_kernel(const float* x, float* total, int64_t n) {
  __shared__ float s[kThreads];
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) total[0] += s[0];
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  clear<<<1, 1, 0, stream>>>(total);
  sum_kernel<<<(unsigned)((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, total, n);
}
