// Rung 1: eight heads share a tile of gathered tokens in shared memory; scalar products.
//
// Changed     the start of the ladder.
// Why         all heads have the same tokens, and converting one costs more than reading it: a block converts
//             a tile once for eight heads, and uses it twice, as keys and as values.
// Prediction  6 ms: 1088 multiply-adds for a head and token take a warp 34 instructions, the sum over lanes
//             and the softmax as many again; 67 million pairs of head and token at the measured size.
// Came        17.9 ms on an H100, 8.1 TFLOP/s. 19 % of the native baseline.
//
// Shapes      q [b, s_q, h, 576]; cache [tokens, 656] bytes; indices [b, s_q, topk]; o [b, s_q, h, 512].
// Launch      a block of 256 threads for eight heads of a list, a warp for a head.
// Resources   36 KB of shared memory.
// Cost        2 h (576 + 512) FLOPs for each token of a list; a list is gathered and converted h / 8 times.
// Divides     nothing: heads, lists and tiles may be ragged.
// Source      Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); DeepSeek-V3.2
//             (2025) for attention over a list of tokens and for the bytes of a token.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

constexpr int kThreads = 256, kRows = 8, kTokens = 32, kKey = 576, kValue = 512;
constexpr int kBytes = 656, kScales = 512, kPosition = 528;  // [B] of a token; where its parts begin

/// A bf16 is the upper half of a float.
__device__ float2 widen(uint32_t two) {
  return {__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u)};
}
__device__ uint32_t pair(float a, float b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ float value_of(uint8_t code) {
  __nv_fp8_e4m3 number;
  number.__x = code;
  return static_cast<float>(number);
}
/// Columns x and x + 1 of a token, in bf16.
__device__ uint32_t two_of(const uint8_t* token, int x) {
  if (x >= kValue) return *reinterpret_cast<const uint32_t*>(token + kPosition + (x - kValue) * 2);
  const uint16_t codes = *reinterpret_cast<const uint16_t*>(token + x);
  const float scale = reinterpret_cast<const float*>(token + kScales)[x / 128];
  return pair(value_of(static_cast<uint8_t>(codes)) * scale,
              value_of(static_cast<uint8_t>(codes >> 8)) * scale);
}

__global__ void __launch_bounds__(kThreads)
    decode(const __nv_bfloat16* q, const uint8_t* cache, const int* indices, __nv_bfloat16* o, int h,
           int topk, float factor) {
  __shared__ uint32_t tile[kTokens][kKey / 2];
  const int lane = threadIdx.x % 32, row = blockIdx.x * kRows + threadIdx.x / 32;
  const int64_t list = blockIdx.y, to = list * h + row;
  // A lane has the columns 2 lane, 2 lane + 1 of every 64; the first eight of nine pairs are values, too.
  float2 query[kKey / 64] = {}, result[kValue / 64] = {};
  if (row < h)
    for (int i = 0; i < kKey / 64; ++i) {
      const float2 two = widen(reinterpret_cast<const uint32_t*>(q + to * kKey)[i * 32 + lane]);
      query[i] = {two.x * factor, two.y * factor};
    }
  float top = -INFINITY, sum = 0;
  for (int first = 0; first < topk; first += kTokens) {
    const int index = first + lane < topk ? indices[list * topk + first + lane] : -1;
    __syncthreads();  // the last tile has been used
    for (int i = threadIdx.x; i < kTokens * kKey / 2; i += kThreads) {
      const int t = i / (kKey / 2), of_t = __shfl_sync(0xffffffffu, index, t);  // a warp has one token
      if (of_t >= 0) tile[t][i % (kKey / 2)] = two_of(cache + int64_t{of_t} * kBytes, i % (kKey / 2) * 2);
    }
    __syncthreads();
    for (int j = 0; j < kTokens; ++j) {
      if (__shfl_sync(0xffffffffu, index, j) < 0) continue;
      float2 key[kKey / 64];
      float score = 0;
#pragma unroll
      for (int i = 0; i < kKey / 64; ++i) {
        key[i] = widen(tile[j][i * 32 + lane]);
        score += query[i].x * key[i].x + query[i].y * key[i].y;
      }
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) score += __shfl_xor_sync(0xffffffffu, score, offset);
      if (score > top) {  // the same in all lanes
        const float shrink = exp2f(top - score);
        top = score;
        sum *= shrink;
#pragma unroll
        for (auto& two : result) two.x *= shrink, two.y *= shrink;
      }
      const float weight = exp2f(score - top);
      sum += weight;
#pragma unroll
      for (int i = 0; i < kValue / 64; ++i)
        result[i].x += weight * key[i].x, result[i].y += weight * key[i].y;
    }
  }
  if (row >= h) return;
  const float scale = sum > 0 ? 1 / sum : 0.0f;
  __nv_bfloat162* const out = reinterpret_cast<__nv_bfloat162*>(o + to * kValue);
  for (int i = 0; i < kValue / 64; ++i)
    out[i * 32 + lane] = __floats2bfloat162_rn(result[i].x * scale, result[i].y * scale);
}

extern "C" void launch(const __nv_bfloat16* q /*[b,s_q,h,576]*/, const uint8_t* cache /*[tokens,656]*/,
                       const int32_t* indices /*[b,s_q,topk]*/, __nv_bfloat16* o /*[b,s_q,h,512]*/, int64_t b,
                       int64_t s_q, int64_t h, int64_t /*tokens*/, int64_t topk, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((h + kRows - 1) / kRows), static_cast<unsigned>(b * s_q));
  decode<<<grid, kThreads, 0, stream>>>(q, cache, indices, o, static_cast<int>(h), static_cast<int>(topk),
                                        static_cast<float>(M_LOG2E / std::sqrt(double{kKey})));
}
