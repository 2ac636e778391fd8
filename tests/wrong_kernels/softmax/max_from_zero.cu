// cause: missing_maximum
// mistake: the maximum starts at 0, so a row without a positive number is not shifted: far below 0 it gives 0/0.
#include <cuda_runtime.h>

#include <cstdint>

// One warp per row, four rows per block.
__global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t cols) {
  const int lane = threadIdx.x % 32;
  const int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
  if (row >= rows) return;
  const float* in = x + row * cols;
  float* out = y + row * cols;
  float top = 0.0f;
  for (int64_t c = lane; c < cols; c += 32) top = fmaxf(top, in[c]);
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  float sum = 0.0f;
  for (int64_t c = lane; c < cols; c += 32) sum += expf(in[c] - top);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  for (int64_t c = lane; c < cols; c += 32) out[c] = expf(in[c] - top) / sum;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_rows<<<(unsigned)((rows + 3) / 4), 128, 0, stream>>>(x, y, rows, cols);
}
