// Rung 1: eight heads share a tile of the cache in shared memory; scalar products.
//
// Changed     the start of the ladder.
// Why         all heads have the same keys, and the values are the first 512 of 576 columns of the keys: one
//             tile in shared memory serves eight rows, twice.
// Prediction  6 ms: 1088 multiply-adds for a row and token take a warp 34 instructions, the sum over lanes
//             and the softmax as many again; 67 million pairs of row and token at the measured size.
//
// Shapes      q [b, s_q, h, 576]; cache [b * max_pages, 64, 576]; block_table [b, max_pages]; lengths [b];
//             o [b, s_q, h, 512].
// Launch      a block of 256 threads for eight rows (new token and head) of a sequence, a warp for a row.
// Resources   36 KB of shared memory.
// Cost        2 s_q h (576 + 512) sum(lengths) FLOPs; the cache is read s_q h / 8 times, mostly from L2.
// Divides     nothing: rows, lengths and tiles may be ragged.
// Source      Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); DeepSeek-V2 (2024)
//             for the absorbed form of multi-head latent attention.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

constexpr int kThreads = 256, kRows = 8, kTokens = 32, kPage = 64, kKey = 576, kValue = 512;

/// A bf16 is the upper half of a float.
__device__ float2 widen(uint32_t two) {
  return {__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u)};
}

__global__ void __launch_bounds__(kThreads)
    decode(const __nv_bfloat16* q, const __nv_bfloat16* cache, const int* table, const int* lengths,
           __nv_bfloat16* o, int s_q, int h, int max_pages, float factor) {
  __shared__ uint4 tile[kTokens][kKey / 8];
  const int lane = threadIdx.x % 32, s = blockIdx.y, rows = s_q * h;
  const int row = blockIdx.x * kRows + threadIdx.x / 32, length = lengths[s];
  const int seen = row < rows ? length - (s_q - 1 - row / h) : 0;
  const int64_t to = int64_t{s} * rows + row;
  // A lane has the columns 2 lane, 2 lane + 1 of every 64; the first eight of nine pairs are values, too.
  float2 query[kKey / 64] = {}, result[kValue / 64] = {};
  if (row < rows)
    for (int i = 0; i < kKey / 64; ++i) {
      const float2 two = widen(reinterpret_cast<const uint32_t*>(q + to * kKey)[i * 32 + lane]);
      query[i] = {two.x * factor, two.y * factor};
    }
  float top = -INFINITY, sum = 0;
  for (int first = 0; first < length; first += kTokens) {
    const int64_t page = table[int64_t{s} * max_pages + first / kPage];
    const int there = min(kTokens, length - first);
    const uint4* const from = reinterpret_cast<const uint4*>(cache + (page * kPage + first % kPage) * kKey);
    __syncthreads();  // the last tile has been used
    for (int i = threadIdx.x; i < there * (kKey / 8); i += kThreads)
      tile[i / (kKey / 8)][i % (kKey / 8)] = from[i];
    __syncthreads();
    for (int j = 0; j < min(there, seen - first); ++j) {
      const uint32_t* const token = reinterpret_cast<const uint32_t*>(tile[j]);
      float2 key[kKey / 64];
      float score = 0;
#pragma unroll
      for (int i = 0; i < kKey / 64; ++i) {
        key[i] = widen(token[i * 32 + lane]);
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
  if (row >= rows) return;
  const float scale = sum > 0 ? 1 / sum : 0.0f;
  __nv_bfloat162* const out = reinterpret_cast<__nv_bfloat162*>(o + to * kValue);
  for (int i = 0; i < kValue / 64; ++i)
    out[i * 32 + lane] = __floats2bfloat162_rn(result[i].x * scale, result[i].y * scale);
}

extern "C" void launch(const __nv_bfloat16* q /*[b,s_q,h,576]*/,
                       const __nv_bfloat16* cache /*[b * max_pages,64,576]*/,
                       const int32_t* block_table /*[b,max_pages]*/, const int32_t* lengths /*[b]*/,
                       __nv_bfloat16* o /*[b,s_q,h,512]*/, int64_t b, int64_t s_q, int64_t h,
                       int64_t max_pages, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((s_q * h + kRows - 1) / kRows), static_cast<unsigned>(b));
  decode<<<grid, kThreads, 0, stream>>>(q, cache, block_table, lengths, o, static_cast<int>(s_q),
                                        static_cast<int>(h), static_cast<int>(max_pages),
                                        static_cast<float>(M_LOG2E / std::sqrt(double{kKey})));
}
