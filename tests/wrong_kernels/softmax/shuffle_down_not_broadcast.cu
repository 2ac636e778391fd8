// cause: partial_reduction
// mistake: __shfl_down_sync leaves the sum in lane 0 alone, and the other lanes divide by their partial sums.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void softmax_warp_per_row(const float* x, float* y, int64_t rows, int64_t cols) {
  int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x & 31;
  if (row >= rows) return;
  x += row * cols;
  y += row * cols;

  float m = -INFINITY;
  for (int64_t c = lane; c < cols; c += 32) m = fmaxf(m, x[c]);
  for (int d = 16; d >= 1; d /= 2) m = fmaxf(m, __shfl_down_sync(0xffffffffu, m, d));
  m = __shfl_sync(0xffffffffu, m, 0);

  float s = 0.f;
  for (int64_t c = lane; c < cols; c += 32) s += expf(x[c] - m);
  for (int d = 16; d >= 1; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);

  for (int64_t c = lane; c < cols; c += 32) y[c] = expf(x[c] - m) / s;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  const int threads = 128;
  const int rows_per_block = threads / 32;
  softmax_warp_per_row<<<(rows + rows_per_block - 1) / rows_per_block, threads, 0, stream>>>(x, y, rows,
                                                                                             cols);
}
