// Honest: Takes its scratch from cudaMallocAsync in every call, and gives it back.
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

/// Two passes over a row leave its maximum and its sum.
__global__ void statistics(const float* x, float* most, float* sum, int64_t rows, int64_t cols) {
  const int64_t row = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (row >= rows) return;
  float high = -FLT_MAX, all = 0;
  for (int64_t i = 0; i < cols; ++i) high = fmaxf(high, x[row * cols + i]);
  for (int64_t i = 0; i < cols; ++i) all += expf(x[row * cols + i] - high);
  most[row] = high;
  sum[row] = all;
}

__global__ void divide(const float* x, const float* most, const float* sum, float* y, int64_t rows, int64_t cols) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < rows * cols) y[i] = expf(x[i] - most[i / cols]) / sum[i / cols];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  float* scratch = nullptr;
  cudaMallocAsync(&scratch, 2 * rows * sizeof(float), stream);
  statistics<<<static_cast<unsigned>((rows + 63) / 64), 64, 0, stream>>>(x, scratch, scratch + rows, rows, cols);
  divide<<<static_cast<unsigned>((rows * cols + 255) / 256), 256, 0, stream>>>(x, scratch, scratch + rows, y, rows, cols);
  cudaFreeAsync(scratch, stream);
}
