// Rung 2: maximum and sum in one pass: online softmax.
//
// Changed     a thread carries a pair (maximum so far, sum of exponentials about it). A larger maximum
//             rescales the sum instead of asking for another pass; two pairs merge by the same rule, so warps
//             reduce by shuffles.
// Why         rung 1 read the row once only to learn the maximum.
// Prediction  3 floats per element instead of 4: 1.33x rung 1 where rows do not fit a cache. Where they do
//             (4096 columns are 16 KB) the pass saved was a cheap one, and the extra exponentials may cost as
//             much as it did.
//
// Shapes      x, y [rows, cols], row-major; any rows, any cols.
// Launch      <<<rows, 256>>>; a warp reads 128 adjacent bytes.
// Resources   32 registers; 64 bytes of shared memory.
// Cost        6 * rows * cols FLOPs (an extra exponential per element); 12 * rows * cols bytes (8 would do).
// Divides     no divisibility is required.
// Source      Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018; the heart of
//             FlashAttention.
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

/// sum = Σ exp(x - maximum) over the elements seen. Of no elements: {-FLT_MAX, 0}; not -inf, because inf -
/// inf is NaN.
struct Running {
  float maximum, sum;
};

__device__ Running merge(Running a, Running b) {
  const float maximum = fmaxf(a.maximum, b.maximum);
  return {maximum, a.sum * expf(a.maximum - maximum) + b.sum * expf(b.maximum - maximum)};
}

/// Merges the pairs of all threads of the block; every thread gets the result.
__device__ Running block_merge(Running mine) {
  __shared__ Running partial[kWarps];
  for (int offset = 16; offset > 0; offset /= 2) {
    const Running other = {__shfl_xor_sync(0xffffffffu, mine.maximum, offset),
                           __shfl_xor_sync(0xffffffffu, mine.sum, offset)};
    mine = merge(mine, other);
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
  __syncthreads();
  mine = partial[0];
  for (int warp = 1; warp < kWarps; ++warp) mine = merge(mine, partial[warp]);
  return mine;
}

__global__ void softmax(const float* x, float* y, int64_t cols) {
  const int64_t row = blockIdx.x * cols;

  Running running = {-FLT_MAX, 0};
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) running = merge(running, {x[row + c], 1});
  running = block_merge(running);

  const float scale = 1 / running.sum;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) y[row + c] = expf(x[row + c] - running.maximum) * scale;
}

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[rows,cols]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  softmax<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, y, cols);
}
