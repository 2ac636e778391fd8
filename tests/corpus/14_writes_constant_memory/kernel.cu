// Row 14: A kernel writes to __constant__ memory. nvcc warns; on a GPU the write is lost, or an error.
#include <cuda_runtime.h>

#include <cstdint>

__constant__ float factor[2];

__global__ void set_factor() { const_cast<float*>(factor)[0] = 1; }

__global__ void sum(const float* x, float* total, int64_t n) {
  double all = 0;  // a long sum of one sign must not fail for its rounding
  for (int64_t i = 0; i < n; ++i) all += factor[0] * x[i];
  total[0] = static_cast<float>(all);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  set_factor<<<1, 1, 0, stream>>>();
  sum<<<1, 1, 0, stream>>>(x, total, n);
}
