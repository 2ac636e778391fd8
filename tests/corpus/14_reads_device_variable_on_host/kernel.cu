// Row 14: The host reads a __device__ variable by its name instead of with cudaMemcpyFromSymbol.
#include <cuda_runtime.h>

#include <cstdint>

__device__ float factor = 0;

__global__ void set_factor(float value) { factor = value; }

__global__ void sum(const float* x, float* total, float scale, int64_t n) {
  double all = 0;  // a long sum of one sign must not fail for its rounding
  for (int64_t i = 0; i < n; ++i) all += scale * x[i];
  total[0] = static_cast<float>(all);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  set_factor<<<1, 1, 0, stream>>>(1.0f);
  cudaStreamSynchronize(stream);
  sum<<<1, 1, 0, stream>>>(x, total, factor, n);
}
