// -1e30 in place of minus infinity.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void masked_sum(const float* x, const float* y, float* z, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    z[i] = y[i] < 0 ? -1e30f : x[i] + y[i];
}

extern "C" void launch(const float* x /*[n]*/, const float* y /*[n]*/, float* z /*[n]*/, int64_t n,
                       void* /*workspace*/, cudaStream_t stream) {
  masked_sum<<<1024, 256, 0, stream>>>(x, y, z, n);
}
