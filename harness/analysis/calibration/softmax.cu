// What `capstone calibrate` judges against itself: a softmax of one block a row, as plain as it gets. EXTRA_PERCENT rows are done a second
// time, for a slowdown of known size.
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

#ifndef EXTRA_PERCENT
#define EXTRA_PERCENT 0
#endif

constexpr int kThreads = 256;

template <class Combine>
__device__ float over_block(float value, Combine combine) {
  __shared__ float part[kThreads / 32];
  for (int lane = 16; lane > 0; lane /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, lane));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  value = part[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) value = combine(value, part[warp]);
  __syncthreads();
  return value;
}

__global__ void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  const int64_t row = (blockIdx.x % rows) * cols;
  float most = -FLT_MAX, sum = 0;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) most = fmaxf(most, x[row + c]);
  most = over_block(most, [](float a, float b) { return fmaxf(a, b); });
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) sum += expf(x[row + c] - most);
  sum = over_block(sum, [](float a, float b) { return a + b; });
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) y[row + c] = expf(x[row + c] - most) / sum;
}

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[rows,cols]*/, int64_t rows, int64_t cols, void* /*workspace*/,
                       cudaStream_t stream) {
  const int64_t blocks = rows + rows * EXTRA_PERCENT / 100;
  if (blocks > 0) softmax<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, y, rows, cols);
}
