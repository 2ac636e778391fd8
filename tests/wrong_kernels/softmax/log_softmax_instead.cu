// cause: logic
// mistake: the kernel writes the logarithm of the softmax.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void softmax_rows(const float* x, float* y, int64_t rows, int64_t cols) {
  int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const float* in = x + row * cols;
  float m = -INFINITY;
  for (int64_t j = threadIdx.x; j < cols; j += 32) m = fmaxf(m, in[j]);
  for (int o = 16; o > 0; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
  float s = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += 32) s += expf(in[j] - m);
  for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
  float lse = m + logf(s);
  for (int64_t j = threadIdx.x; j < cols; j += 32) y[row * cols + j] = in[j] - lse;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_rows<<<(unsigned)((rows + 3) / 4), dim3(32, 4), 0, stream>>>(x, y, rows, cols);
}
