// Rung 3: 16 bytes a load, several tokens at once, the next pages asked for in advance.
//
// Changed     rung 2, but 16 (d 128) or 8 lanes own a token, with eight numbers each. A lane asks for four
//             keys and four values before it uses one, and for the pages of its next four before that.
//             The result shrinks only where a maximum has grown.
// Why         in rung 2 a warp has one token on its way, asks for it two bytes at a time, and waits for its
//             page before.
// Prediction  2.5 TB/s where there are many sequences; with one of them, eight blocks are all there is.
// Came        439 us on an H100, 1226 GB/s, 2.38 times the rung before. 530 % of the native baseline.
//
// Shapes      q, o [b, hq, d]; k_cache, v_cache [b * max_pages, page, hk, d]; page_table [b, max_pages];
//             lengths [b].
// Launch      <<<(hk, b), 256>>>
// Resources   up to 188 registers; 33 KB of shared memory; no workspace.
// Cost        4 sum(lengths) hq d FLOPs; 4 sum(lengths) hk d bytes.
// Divides     d is 64 or 128, at most 8 heads of q for one of k (the problem says so).
// Source      this project.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kSteps = 4;  // tokens that a lane asks for at once
constexpr unsigned kAllLanes = 0xffffffffu;

struct Problem {
  const __nv_bfloat16 *q, *k, *v;
  const int *table, *lengths;
  __nv_bfloat16* o;
  int64_t hq, max_pages, page, hk;
  float factor;
};

/// 16 bytes are eight bf16; a bf16 is the upper half of a float.
struct Eight {
  float x[8];
  __device__ explicit Eight(uint4 w) {
    const unsigned word[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = __uint_as_float(word[i] << 16);
      x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
    }
  }
};
__device__ uint4 sixteen_bytes(const __nv_bfloat16* at) { return __ldg(reinterpret_cast<const uint4*>(at)); }

/// kGroup: heads of q for a head of k, or the next power of two.
template <int kDim, int kGroup>
__global__ void __launch_bounds__(kThreads, kGroup > 4 ? 1 : 2) decode(const Problem p) {
  constexpr int kLanes = kDim / 8, kRows = kThreads / kLanes;  // lanes of a token; tokens of a block at once
  __shared__ float tops[kWarps][kGroup], sums[kWarps][kGroup], parts[kWarps][kGroup][kDim];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % kLanes * 8;
  const int group = static_cast<int>(p.hq / p.hk);
  const int64_t head = blockIdx.x, s = blockIdx.y, first = s * p.hq + head * group;
  const int end = p.lengths[s];

  const int* const pages = p.table + s * p.max_pages;
  const auto page_of = [&](int token) {
    return pages[max(0, min(token, end - 1)) / static_cast<int>(p.page)];
  };
  const auto place_of = [&](int number, int token) {
    return ((int64_t{number} * p.page + min(token, end - 1) % static_cast<int>(p.page)) * p.hk + head) *
               kDim +
           column;
  };
  float query[kGroup][8], mine[kGroup][8] = {}, top[kGroup], sum[kGroup] = {};
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    top[g] = -INFINITY;
    const Eight eight(g < group ? sixteen_bytes(p.q + (first + g) * kDim + column) : make_uint4(0, 0, 0, 0));
#pragma unroll
    for (int i = 0; i < 8; ++i) query[g][i] = eight.x[i] * p.factor;
  }

  int token = threadIdx.x / kLanes, number[kSteps];
#pragma unroll
  for (int n = 0; n < kSteps; ++n) number[n] = page_of(token + n * kRows);
  // All lanes of a warp go on as long as one has a token: they exchange scores.
  for (; token - lane / kLanes < end; token += kSteps * kRows) {
    uint4 key[kSteps], value[kSteps];
#pragma unroll
    for (int n = 0; n < kSteps; ++n) {
      const int64_t at = place_of(number[n], token + n * kRows);
      key[n] = sixteen_bytes(p.k + at);
      value[n] = sixteen_bytes(p.v + at);
    }
#pragma unroll
    for (int n = 0; n < kSteps; ++n) number[n] = page_of(token + (kSteps + n) * kRows);
#pragma unroll
    for (int n = 0; n < kSteps; ++n) {
      const Eight keys(key[n]), values(value[n]);
      const bool exists = token + n * kRows < end;
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
        float score = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) score += query[g][i] * keys.x[i];
#pragma unroll
        for (int offset = kLanes / 2; offset > 0; offset /= 2)
          score += __shfl_xor_sync(kAllLanes, score, offset);
        if (!exists) continue;
        if (score > top[g]) {
          const float shrink = exp2f(top[g] - score);
          top[g] = score;
          sum[g] *= shrink;
#pragma unroll
          for (int i = 0; i < 8; ++i) mine[g][i] *= shrink;
        }
        const float weight = exp2f(score - top[g]);
        sum[g] += weight;
#pragma unroll
        for (int i = 0; i < 8; ++i) mine[g][i] += weight * values.x[i];
      }
    }
  }

  // The rows of a warp, then the warps.
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    float highest = top[g];
#pragma unroll
    for (int offset = kLanes; offset < 32; offset *= 2)
      highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, offset));
    const float shrink = top[g] == -INFINITY ? 0 : exp2f(top[g] - highest);
    sum[g] *= shrink;
#pragma unroll
    for (int i = 0; i < 8; ++i) mine[g][i] *= shrink;
#pragma unroll
    for (int offset = kLanes; offset < 32; offset *= 2) {
      sum[g] += __shfl_xor_sync(kAllLanes, sum[g], offset);
#pragma unroll
      for (int i = 0; i < 8; ++i) mine[g][i] += __shfl_xor_sync(kAllLanes, mine[g][i], offset);
    }
    if (lane == 0) tops[warp][g] = highest, sums[warp][g] = sum[g];
    if (lane < kLanes) {
#pragma unroll
      for (int i = 0; i < 8; ++i) parts[warp][g][column + i] = mine[g][i];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < group * kDim; i += kThreads) {
    const int g = i / kDim, x = i % kDim;
    float highest = -INFINITY, total = 0, result = 0;
    for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, tops[w][g]);
    for (int w = 0; w < kWarps; ++w) {
      if (sums[w][g] == 0) continue;  // a warp without tokens
      const float shrink = exp2f(tops[w][g] - highest);
      total += sums[w][g] * shrink;
      result += parts[w][g][x] * shrink;
    }
    p.o[first * kDim + i] = __float2bfloat16(end > 0 ? result / total : 0.0f);
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
