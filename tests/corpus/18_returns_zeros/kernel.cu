// Row 18: Writes zeros.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void fill(const float* x, float* y, int64_t rows, int64_t cols) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < rows * cols) y[i] = 0;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  fill<<<static_cast<unsigned>((rows * cols + 255) / 256), 256, 0, stream>>>(x, y, rows, cols);
}
