// Native baseline: the forward pass of PyTorch's log-softmax without its large result, and with bf16 logits as they are.
//
// One block a row and two passes: the maximum, then the sum of exponentials. 16-byte loads where rows are aligned. What
// is left to win: the second read, which does not find the row in a cache.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

__device__ float warp_max(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
  return v;
}
__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

/// Combines the warps' results; every thread gets the answer. `partial` must not be in use.
template <class Reduce>
__device__ float across_warps(float v, float neutral, float* partial, Reduce reduce) {
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  return reduce(threadIdx.x % 32 < kWarps ? partial[threadIdx.x % 32] : neutral);
}

/// `kVector` needs vocab % 8 == 0, so that every row starts on 16 bytes.
template <bool kVector>
__global__ void cross_entropy(const __nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
                              float* __restrict__ loss, float* __restrict__ lse, int64_t vocab) {
  __shared__ float partial[2][kWarps];
  const __nv_bfloat16* row = logits + blockIdx.x * vocab;
  const uint4* row8 = reinterpret_cast<const uint4*>(row);
  const int64_t vectors = kVector ? vocab / 8 : 0;  // the scalar loops start behind these

  float maximum = -FLT_MAX;
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    const uint4 v = row8[i];
    maximum = fmaxf(maximum, fmaxf(fmaxf(fmaxf(low(v.x), high(v.x)), fmaxf(low(v.y), high(v.y))),
                                   fmaxf(fmaxf(low(v.z), high(v.z)), fmaxf(low(v.w), high(v.w)))));
  }
  for (int64_t i = vectors * 8 + threadIdx.x; i < vocab; i += kThreads)
    maximum = fmaxf(maximum, __bfloat162float(row[i]));
  maximum = across_warps(warp_max(maximum), -FLT_MAX, partial[0], warp_max);

  float sum = 0;
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    const uint4 v = row8[i];
    sum += ((expf(low(v.x) - maximum) + expf(high(v.x) - maximum)) +
            (expf(low(v.y) - maximum) + expf(high(v.y) - maximum))) +
           ((expf(low(v.z) - maximum) + expf(high(v.z) - maximum)) +
            (expf(low(v.w) - maximum) + expf(high(v.w) - maximum)));
  }
  for (int64_t i = vectors * 8 + threadIdx.x; i < vocab; i += kThreads)
    sum += expf(__bfloat162float(row[i]) - maximum);
  sum = across_warps(warp_sum(sum), 0.0f, partial[1], warp_sum);

  if (threadIdx.x == 0) {
    const int64_t chosen = target[blockIdx.x];
    const float total = maximum + logf(sum);
    lse[blockIdx.x] = total;
    loss[blockIdx.x] = chosen >= 0 && chosen < vocab ? total - __bfloat162float(row[chosen]) : 0.0f;
  }
}

}  // namespace

extern "C" const char* baseline_label() { return "native: block a row in two passes, as in PyTorch's log-softmax, bf16"; }

extern "C" void launch(const __nv_bfloat16* logits /*[rows,vocab]*/, const int32_t* target /*[rows]*/,
                       float* loss /*[rows]*/, float* lse /*[rows]*/, int64_t rows, int64_t vocab, void* /*workspace*/,
                       cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  const auto kernel = vocab % 8 == 0 ? cross_entropy<true> : cross_entropy<false>;
  kernel<<<blocks, kThreads, 0, stream>>>(logits, target, loss, lse, vocab);
}
