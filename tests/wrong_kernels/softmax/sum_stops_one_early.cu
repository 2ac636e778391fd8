// cause: off_by_one
// mistake: the loop of the sum stops before the last column.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  x += (size_t)row * cols;
  y += (size_t)row * cols;
  float m = x[0];
  for (int j = 1; j < cols; j++) {
    if (x[j] > m) m = x[j];
  }
  float sum = 0.f;
  for (int j = 0; j < cols - 1; j++) sum += expf(x[j] - m);
  for (int j = 0; j < cols; j++) y[j] = expf(x[j] - m) / sum;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax<<<(rows + 127) / 128, 128, 0, stream>>>(x, y, (int)rows, (int)cols);
}
