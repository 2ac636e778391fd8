// cause: swapped
// mistake: exp(max - x) instead of exp(x - max): the operands of the difference are swapped.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void softmax_naive(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; row < rows;
       row += (int64_t)gridDim.x * blockDim.x) {
    const float* in = x + row * cols;
    float* out = y + row * cols;
    float row_max = in[0];
    for (int64_t j = 1; j < cols; ++j) row_max = fmaxf(row_max, in[j]);
    float row_sum = 0.0f;
    for (int64_t j = 0; j < cols; ++j) {
      out[j] = expf(row_max - in[j]);
      row_sum += out[j];
    }
    for (int64_t j = 0; j < cols; ++j) out[j] /= row_sum;
  }
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_naive<<<64, 64, 0, stream>>>(x, y, rows, cols);
}
