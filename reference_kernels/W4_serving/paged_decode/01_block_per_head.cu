// Rung 1: a block for each sequence and head of q, a warp for a token.
//
// Changed     nothing yet.
// Why         start with what follows the definition: each head of q reads its head of k for itself.
// Prediction  0.5 TB/s of the least bytes: with four heads of q for one of k, keys and values come four
//             times, two bytes an access, and a warp waits for a token before it asks for the next one.
// Came        2.01 ms on an H100, 267 GB/s. 116 % of the native baseline.
//
// Shapes      q, o [b, hq, d]; k_cache, v_cache [b * max_pages, page, hk, d]; page_table [b, max_pages];
//             lengths [b].
// Launch      <<<(hq, b), 128>>>
// Resources   40 registers; 2 KB of shared memory; no workspace.
// Cost        4 sum(lengths) hq d FLOPs; reads 4 sum(lengths) hq d bytes, hk for hq would do.
// Divides     d is 64 or 128 (the problem says so).
// Source      online softmax: M. Milakov, N. Gimelshein (2018).
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int kThreads = 128, kWarps = kThreads / 32;

__device__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

template <int kDim>
__global__ void __launch_bounds__(kThreads)
    decode(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k,
           const __nv_bfloat16* __restrict__ v, const int* __restrict__ table,
           const int* __restrict__ lengths, __nv_bfloat16* __restrict__ o, int64_t hq, int64_t max_pages,
           int64_t page, int64_t hk, float factor) {
  constexpr int kWide = kDim / 32;  // numbers of a head that a lane has
  __shared__ float tops[kWarps], sums[kWarps], parts[kWarps][kDim];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t h = blockIdx.x, s = blockIdx.y, head = h / (hq / hk);
  const int length = lengths[s];

  float query[kWide], mine[kWide] = {}, top = -INFINITY, sum = 0;
  for (int i = 0; i < kWide; ++i) query[i] = __bfloat162float(q[(s * hq + h) * kDim + i * 32 + lane]);
  for (int token = warp; token < length; token += kWarps) {
    const int64_t row = int64_t{table[s * max_pages + token / page]} * page + token % page;
    const int64_t at = (row * hk + head) * kDim + lane;
    float score = 0;
    for (int i = 0; i < kWide; ++i) score += query[i] * __bfloat162float(k[at + i * 32]);
    score = warp_sum(score) * factor;
    // The softmax of the tokens so far: what was added under a lower maximum shrinks.
    const float next = fmaxf(top, score), shrink = exp2f(top - next), weight = exp2f(score - next);
    top = next;
    sum = sum * shrink + weight;
    for (int i = 0; i < kWide; ++i) mine[i] = mine[i] * shrink + weight * __bfloat162float(v[at + i * 32]);
  }

  if (lane == 0) tops[warp] = top, sums[warp] = sum;
  for (int i = 0; i < kWide; ++i) parts[warp][i * 32 + lane] = mine[i];
  __syncthreads();
  if (threadIdx.x >= kDim) return;
  float highest = -INFINITY, total = 0, value = 0;
  for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, tops[w]);
  for (int w = 0; w < kWarps; ++w) {
    if (sums[w] == 0) continue;  // a warp without tokens
    const float shrink = exp2f(tops[w] - highest);
    total += sums[w] * shrink;
    value += parts[w][threadIdx.x] * shrink;
  }
  o[(s * hq + h) * kDim + threadIdx.x] = __float2bfloat16(length > 0 ? value / total : 0.0f);
}

extern "C" void launch(const __nv_bfloat16* q /*[b,hq,d]*/,
                       const __nv_bfloat16* k_cache /*[b * max_pages,page,hk,d]*/,
                       const __nv_bfloat16* v_cache /*[b * max_pages,page,hk,d]*/,
                       const int32_t* page_table /*[b,max_pages]*/, const int32_t* lengths /*[b]*/,
                       __nv_bfloat16* o /*[b,hq,d]*/, int64_t b, int64_t hq, int64_t d, int64_t max_pages,
                       int64_t page, int64_t hk, void* /*workspace*/, cudaStream_t stream) {
  const auto kernel = d == 64 ? decode<64> : decode<128>;
  const float factor = 1.4426950408889634f / std::sqrt(static_cast<float>(d));  // exponentials to the base 2
  kernel<<<dim3(static_cast<unsigned>(hq), static_cast<unsigned>(b)), kThreads, 0, stream>>>(
      q, k_cache, v_cache, page_table, lengths, o, hq, max_pages, page, hk, factor);
}
