// Live demo: one block for the whole vector. Correct and slow: it passes gate one and loses at gate two.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void vector_add(const float* x, const float* y, float* z, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) z[i] = x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* z, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  vector_add<<<1, 256, 0, stream>>>(x, y, z, n);
}
