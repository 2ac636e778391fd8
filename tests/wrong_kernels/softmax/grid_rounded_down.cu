// cause: unwritten
// mistake: the grid is rows / 4 rounded down, so the last rows are computed by no warp.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kRowsPerBlock = 4;

__global__ void softmax_warps(const float* x, float* y, int64_t rows, int64_t cols) {
  const int64_t row = (int64_t)blockIdx.x * kRowsPerBlock + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* in = x + row * cols;
  float m = -INFINITY;
  for (int64_t j = lane; j < cols; j += 32) m = fmaxf(m, in[j]);
  for (int o = 16; o > 0; o /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
  float s = 0;
  for (int64_t j = lane; j < cols; j += 32) s += expf(in[j] - m);
  for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffff, s, o);
  for (int64_t j = lane; j < cols; j += 32) y[row * cols + j] = expf(in[j] - m) / s;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  unsigned blocks = (unsigned)(rows / kRowsPerBlock);
  if (blocks == 0) blocks = 1;
  softmax_warps<<<blocks, kRowsPerBlock * 32, 0, stream>>>(x, y, rows, cols);
}
