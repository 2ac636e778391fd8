// Native baseline: log-softmax and its backward pass as two kernels, as PyTorch's eager kernels do it,
// without fp32 copies.
//
// A block a row: the maximum and the sum in two passes, then the gradient by a second kernel. 16-byte loads
// where rows are aligned. What is left to win: the third and the second read of a row.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

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

/// Calls use(column, value) for each logit of the row. `kVector` needs vocab % 8 == 0.
template <bool kVector, class Use>
__device__ void for_each(const __nv_bfloat16* row, int64_t vocab, Use use) {
  if constexpr (kVector) {
    for (int64_t i = threadIdx.x; i < vocab / 8; i += kThreads) {
      const uint4 v = reinterpret_cast<const uint4*>(row)[i];
      const unsigned word[4] = {v.x, v.y, v.z, v.w};
      for (int w = 0; w < 4; ++w) {
        use(i * 8 + 2 * w, __uint_as_float(word[w] << 16));
        use(i * 8 + 2 * w + 1, __uint_as_float(word[w] & 0xffff0000u));
      }
    }
  } else {
    for (int64_t i = threadIdx.x; i < vocab; i += kThreads) use(i, __bfloat162float(row[i]));
  }
}

template <bool kVector>
__global__ void losses(const __nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
                       float* __restrict__ loss, float* __restrict__ lse, int64_t vocab) {
  __shared__ float partial[2][kWarps];
  const __nv_bfloat16* row = logits + blockIdx.x * vocab;
  float maximum = -FLT_MAX, sum = 0;
  for_each<kVector>(row, vocab, [&](int64_t, float x) { maximum = fmaxf(maximum, x); });
  maximum = across_warps(warp_max(maximum), -FLT_MAX, partial[0], warp_max);
  for_each<kVector>(row, vocab, [&](int64_t, float x) { sum += expf(x - maximum); });
  sum = across_warps(warp_sum(sum), 0.0f, partial[1], warp_sum);
  if (threadIdx.x == 0) {
    const int64_t chosen = target[blockIdx.x];
    lse[blockIdx.x] = maximum + logf(sum);
    loss[blockIdx.x] = chosen >= 0 && chosen < vocab ? lse[blockIdx.x] - __bfloat162float(row[chosen]) : 0.0f;
  }
}

template <bool kVector>
__global__ void gradients(__nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
                          const float* __restrict__ lse, int64_t vocab) {
  __nv_bfloat16* row = logits + blockIdx.x * vocab;
  const int64_t chosen = target[blockIdx.x];
  const bool counts = chosen >= 0 && chosen < vocab;
  const float total = lse[blockIdx.x];
  if constexpr (kVector) {
    for (int64_t i = threadIdx.x; i < vocab / 8; i += kThreads) {
      uint4 v = reinterpret_cast<uint4*>(row)[i];
      auto* pair = reinterpret_cast<__nv_bfloat162*>(&v);
      for (int w = 0; w < 4; ++w) {
        const float2 x = __bfloat1622float2(pair[w]);
        const int64_t column = i * 8 + 2 * w;
        pair[w] = __floats2bfloat162_rn(counts ? expf(x.x - total) - (column == chosen) : 0.0f,
                                        counts ? expf(x.y - total) - (column + 1 == chosen) : 0.0f);
      }
      reinterpret_cast<uint4*>(row)[i] = v;
    }
  } else {
    for (int64_t i = threadIdx.x; i < vocab; i += kThreads)
      row[i] = __float2bfloat16(counts ? expf(__bfloat162float(row[i]) - total) - (i == chosen) : 0.0f);
  }
}

}  // namespace

extern "C" const char* baseline_label() {
  return "native: two passes for the loss, a second kernel for the gradient";
}

extern "C" size_t workspace_bytes(int64_t rows, int64_t /*vocab*/) {
  return static_cast<size_t>(rows) * sizeof(float);
}

extern "C" void launch(__nv_bfloat16* logits /*[rows,vocab]*/, const int32_t* target /*[rows]*/,
                       float* loss /*[rows]*/, int64_t rows, int64_t vocab, void* workspace,
                       cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  float* lse = static_cast<float*>(workspace);
  if (vocab % 8 == 0) {
    losses<true><<<blocks, kThreads, 0, stream>>>(logits, target, loss, lse, vocab);
    gradients<true><<<blocks, kThreads, 0, stream>>>(logits, target, lse, vocab);
  } else {
    losses<false><<<blocks, kThreads, 0, stream>>>(logits, target, loss, lse, vocab);
    gradients<false><<<blocks, kThreads, 0, stream>>>(logits, target, lse, vocab);
  }
}
