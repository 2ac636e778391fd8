// cause: stale_tile
// mistake: the running sum is not rescaled when the running maximum of the online softmax grows.
#include <cuda_runtime.h>

#include <cstdint>

// Online softmax: maximum and sum in one pass, one thread per row.
__global__ void online_softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* in = x + row * cols;

  float m = -INFINITY;
  float d = 0.0f;
  for (int64_t j = 0; j < cols; ++j) {
    const float m_new = fmaxf(m, in[j]);
    d = d + __expf(in[j] - m_new);
    m = m_new;
  }
  for (int64_t j = 0; j < cols; ++j) y[row * cols + j] = __expf(in[j] - m) / d;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  online_softmax<<<(unsigned)((rows + 63) / 64), 64, 0, stream>>>(x, y, rows, cols);
}
