// cause: missing_maximum
// mistake: the maximum of the row is not subtracted before exp, so large inputs overflow.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void softmax_naive(const float* x, float* y, int64_t rows, int64_t cols) {
  int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* in = x + row * cols;
  float* out = y + row * cols;

  float m = -INFINITY;
  for (int64_t j = 0; j < cols; ++j) m = fmaxf(m, in[j]);
  float sum = 0.0f;
  for (int64_t j = 0; j < cols; ++j) sum += expf(in[j]);
  for (int64_t j = 0; j < cols; ++j) out[j] = expf(in[j]) / sum;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  int threads = 128;
  int blocks = (int)((rows + threads - 1) / threads);
  softmax_naive<<<blocks, threads, 0, stream>>>(x, y, rows, cols);
}
