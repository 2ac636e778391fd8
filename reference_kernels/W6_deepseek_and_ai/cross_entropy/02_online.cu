// Rung 2: online softmax: one read.
//
// Changed     a thread keeps a running maximum and a running sum. When the maximum grows, the sum is
//             rescaled. The pairs of all threads are merged at the end of the row.
// Why         the second read of rung 1 is a trip to memory: about 1000 rows of 64 KB are in work at the same
//             time, and the L2 cache holds 50 MB.
// Prediction  half of the bytes: 61 us at the speed of a copy. But an element costs two exponentials and
//             waits for the element before it, so the gain is less than two: expect 180 us.
// Came        135 us, 1.17x: a gain of less than two, as predicted.
//
// Shapes      logits [rows, vocab], bf16; target [rows]; loss, lse [rows], fp32; any rows, any vocab.
// Launch      <<<rows, 256>>>.
// Resources   about 32 registers; 64 bytes of shared memory.
// Cost        12 * rows * vocab FLOPs; 2 * rows * vocab bytes: all that has to move.
// Divides     no divisibility is required.
// Source      M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

/// sum = Σ exp(x - maximum) over the elements seen; {-FLT_MAX, 0} of none.
struct Running {
  float maximum, sum;
};

/// Merges the pairs of all lanes; every lane gets the result. One exponential: the maximum is known before
/// sums are rescaled.
__device__ Running warp_merge(Running mine) {
  float maximum = mine.maximum;
  for (int offset = 16; offset > 0; offset /= 2)
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, offset));
  float sum = mine.sum * expf(mine.maximum - maximum);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  return {maximum, sum};
}

/// Merges the pairs of all threads of the block; every thread gets the result.
__device__ Running block_merge(Running mine) {
  __shared__ Running partial[kWarps];
  mine = warp_merge(mine);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  return warp_merge(lane < kWarps ? partial[lane] : Running{-FLT_MAX, 0});
}

__global__ void cross_entropy(const __nv_bfloat16* logits, const int32_t* target, float* loss, float* lse,
                              int64_t vocab) {
  const __nv_bfloat16* row = logits + blockIdx.x * vocab;

  Running running = {-FLT_MAX, 0};
  for (int64_t c = threadIdx.x; c < vocab; c += kThreads) {
    const float x = __bfloat162float(row[c]);
    const float larger = fmaxf(running.maximum, x);
    running.sum = running.sum * expf(running.maximum - larger) + expf(x - larger);
    running.maximum = larger;
  }
  running = block_merge(running);

  if (threadIdx.x != 0) return;
  const int chosen = target[blockIdx.x];
  const float total = running.maximum + logf(running.sum);
  lse[blockIdx.x] = total;
  loss[blockIdx.x] = chosen >= 0 && chosen < vocab ? total - __bfloat162float(row[chosen]) : 0.0f;
}

extern "C" void launch(const __nv_bfloat16* logits /*[rows,vocab]*/, const int32_t* target /*[rows]*/,
                       float* loss /*[rows]*/, float* lse /*[rows]*/, int64_t rows, int64_t vocab,
                       void* /*workspace*/, cudaStream_t stream) {
  cross_entropy<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(logits, target, loss, lse, vocab);
}
