// Rung 2: a block for each sequence and head of k; the heads of q that share it share its loads.
//
// Changed     rung 1, but a block works for all hq / hk heads of q that belong to one head of k, which now
//             comes once. Each warp has their queries and results in registers.
// Why         rung 1 reads every key and value hq / hk times.
// Prediction  3x to 4x rung 1 with four heads of q for one of k; a warp still waits for each token.
// Came        1.05 ms on an H100, 514 GB/s, 1.92 times the rung before. 223 % of the native baseline.
//
// Shapes      q, o [b, hq, d]; k_cache, v_cache [b * max_pages, page, hk, d]; page_table [b, max_pages];
//             lengths [b].
// Launch      <<<(hk, b), 256>>>
// Resources   up to 118 registers; 33 KB of shared memory; no workspace.
// Cost        4 sum(lengths) hq d FLOPs; 4 sum(lengths) hk d bytes.
// Divides     d is 64 or 128, at most 8 heads of q for one of k (the problem says so).
// Source      grouped queries: J. Ainslie et al. (2023).
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256, kWarps = kThreads / 32;

struct Problem {
  const __nv_bfloat16 *q, *k, *v;
  const int *table, *lengths;
  __nv_bfloat16* o;
  int64_t hq, max_pages, page, hk;
  float factor;
};

__device__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

/// kGroup: heads of q for a head of k, or the next power of two.
template <int kDim, int kGroup>
__global__ void __launch_bounds__(kThreads) decode(const Problem p) {
  constexpr int kWide = kDim / 32;  // numbers of a head that a lane has
  __shared__ float tops[kWarps][kGroup], sums[kWarps][kGroup], parts[kWarps][kGroup][kDim];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = static_cast<int>(p.hq / p.hk);
  const int64_t head = blockIdx.x, s = blockIdx.y, first = s * p.hq + head * group;
  const int length = p.lengths[s];

  float query[kGroup][kWide], mine[kGroup][kWide] = {}, top[kGroup], sum[kGroup] = {};
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    top[g] = -INFINITY;
#pragma unroll
    for (int i = 0; i < kWide; ++i)
      query[g][i] = g < group ? __bfloat162float(p.q[(first + g) * kDim + i * 32 + lane]) : 0.0f;
  }
  for (int token = warp; token < length; token += kWarps) {
    const int64_t row = int64_t{p.table[s * p.max_pages + token / p.page]} * p.page + token % p.page;
    const int64_t at = (row * p.hk + head) * kDim + lane;
    float key[kWide], value[kWide];
#pragma unroll
    for (int i = 0; i < kWide; ++i)
      key[i] = __bfloat162float(p.k[at + i * 32]), value[i] = __bfloat162float(p.v[at + i * 32]);
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      float score = 0;
#pragma unroll
      for (int i = 0; i < kWide; ++i) score += query[g][i] * key[i];
      score = warp_sum(score) * p.factor;
      const float next = fmaxf(top[g], score), shrink = exp2f(top[g] - next), weight = exp2f(score - next);
      top[g] = next;
      sum[g] = sum[g] * shrink + weight;
#pragma unroll
      for (int i = 0; i < kWide; ++i) mine[g][i] = mine[g][i] * shrink + weight * value[i];
    }
  }

#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    if (lane == 0) tops[warp][g] = top[g], sums[warp][g] = sum[g];
#pragma unroll
    for (int i = 0; i < kWide; ++i) parts[warp][g][i * 32 + lane] = mine[g][i];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < group * kDim; i += kThreads) {
    const int g = i / kDim, x = i % kDim;
    float highest = -INFINITY, total = 0, value = 0;
    for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, tops[w][g]);
    for (int w = 0; w < kWarps; ++w) {
      if (sums[w][g] == 0) continue;  // a warp without tokens
      const float shrink = exp2f(tops[w][g] - highest);
      total += sums[w][g] * shrink;
      value += parts[w][g][x] * shrink;
    }
    p.o[first * kDim + i] = __float2bfloat16(length > 0 ? value / total : 0.0f);
  }
}

template <int kDim>
auto kernel_for(int64_t group) {
  return group <= 1   ? decode<kDim, 1>
         : group <= 2 ? decode<kDim, 2>
         : group <= 4 ? decode<kDim, 4>
                      : decode<kDim, 8>;
}

extern "C" void launch(const __nv_bfloat16* q /*[b,hq,d]*/,
                       const __nv_bfloat16* k_cache /*[b * max_pages,page,hk,d]*/,
                       const __nv_bfloat16* v_cache /*[b * max_pages,page,hk,d]*/,
                       const int32_t* page_table /*[b,max_pages]*/, const int32_t* lengths /*[b]*/,
                       __nv_bfloat16* o /*[b,hq,d]*/, int64_t b, int64_t hq, int64_t d, int64_t max_pages,
                       int64_t page, int64_t hk, void* /*workspace*/, cudaStream_t stream) {
  const auto kernel = d == 64 ? kernel_for<64>(hq / hk) : kernel_for<128>(hq / hk);
  const float factor = 1.4426950408889634f / std::sqrt(static_cast<float>(d));  // exponentials to the base 2
  const Problem p{q, k_cache, v_cache, page_table, lengths, o, hq, max_pages, page, hk, factor};
  kernel<<<dim3(static_cast<unsigned>(hk), static_cast<unsigned>(b)), kThreads, 0, stream>>>(p);
}
