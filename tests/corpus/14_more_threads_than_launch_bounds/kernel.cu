// Row 14: Launches 1,024 threads of a kernel that promises at most 256 (__launch_bounds__): a GPU refuses the launch.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(256) sum(const float* x, float* total, int64_t n) {
  __shared__ float part[kThreads];
  float mine = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) mine += x[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) total[0] = part[0];
}

extern "C" void launch(const float* x, float* total, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  sum<<<1, kThreads, 0, stream>>>(x, total, n);
}
