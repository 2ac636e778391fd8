// Rung 3: 16 bytes an access, and the sines and cosines of a token are loaded once for all its heads.
//
// Changed     a thread owns eight pairs, i to i + 7, of every n-th head: two 16-byte loads and two 16-byte
//             stores a head. Its eight cosines and sines stay in registers while it walks over the heads.
// Why         rung 2 loads 8 bytes of tables for 4 bytes of q or k, with 2-byte accesses: 8 instructions of
//             the memory system for 8 bytes moved.
// Prediction  instructions of the memory system fall by a factor of ten; what is left is latency. Expect
//             70 to 80 % of the speed of a copy: about 62 us.
// Came        51.0 us, 97 % of a copy: better than predicted.
//
// Shapes      q, q_out [tokens, hq, d]; k, v, k_cache, v_cache [tokens, hk, d], bf16; cos, sin [4096, d/2],
//             fp32; position, slot [tokens]; d even.
// Launch      <<<tokens, chunks x groups>>> with chunks = d/16 and about 128 threads; a group of chunks
//             threads owns a head at a time.
// Resources   40 registers; no shared memory, no workspace.
// Cost        3 FLOPs an element of q and k; 4 * tokens * (hq + 2 hk) * d bytes.
// Divides     d % 16 == 0 and d <= 2048 for the fast path (only then do both halves start on 16 bytes); any
//             other even d takes the kernel of rung 2.
// Source      vectorised access, CUDA C++ Best Practices Guide; register reuse across heads.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

constexpr int kThreads = 128;

/// The eight numbers of a token's row of a table that a thread owns.
struct Eight {
  float at[8];
};

__device__ Eight load_eight(const float* from) {
  const float4 a = reinterpret_cast<const float4*>(from)[0], b = reinterpret_cast<const float4*>(from)[1];
  return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ unsigned pack(float a, float b) {
  return __bfloat16_as_ushort(__float2bfloat16(a)) |
         static_cast<unsigned>(__bfloat16_as_ushort(__float2bfloat16(b))) << 16;
}

/// Rotates two pairs: a word of the left half with a word of the right half.
__device__ void rotate(unsigned& left, unsigned& right, const Eight& c, const Eight& s, int i) {
  const float a0 = low(left), a1 = high(left), b0 = low(right), b1 = high(right);
  left = pack(a0 * c.at[i] - b0 * s.at[i], a1 * c.at[i + 1] - b1 * s.at[i + 1]);
  right = pack(b0 * c.at[i] + a0 * s.at[i], b1 * c.at[i + 1] + a1 * s.at[i + 1]);
}

__global__ void __launch_bounds__(kThreads)
    rope_cache(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k,
               const __nv_bfloat16* __restrict__ v, const float* __restrict__ cosines,
               const float* __restrict__ sines, const int* __restrict__ position,
               const int* __restrict__ slot, __nv_bfloat16* __restrict__ q_out,
               __nv_bfloat16* __restrict__ k_cache, __nv_bfloat16* __restrict__ v_cache, int hq, int d,
               int hk) {
  const int64_t token = blockIdx.x, row = slot[token];
  const int half = d / 2, i = 8 * threadIdx.x, heads = hq + 2 * hk;
  const Eight c = load_eight(cosines + static_cast<int64_t>(position[token]) * half + i);
  const Eight s = load_eight(sines + static_cast<int64_t>(position[token]) * half + i);

  for (int head = threadIdx.y; head < heads; head += blockDim.y) {
    const __nv_bfloat16* from = q + (token * hq + head) * d;
    __nv_bfloat16* to = q_out + (token * hq + head) * d;
    if (head >= hq) {
      const bool key = head < hq + hk;
      const int own = key ? head - hq : head - hq - hk;
      from = (key ? k : v) + (token * hk + own) * d;
      to = (key ? k_cache : v_cache) + (row * hk + own) * d;
    }
    uint4 left = *reinterpret_cast<const uint4*>(from + i);
    uint4 right = *reinterpret_cast<const uint4*>(from + i + half);
    if (head < hq + hk) {
      rotate(left.x, right.x, c, s, 0);
      rotate(left.y, right.y, c, s, 2);
      rotate(left.z, right.z, c, s, 4);
      rotate(left.w, right.w, c, s, 6);
    }
    *reinterpret_cast<uint4*>(to + i) = left;
    *reinterpret_cast<uint4*>(to + i + half) = right;
  }
}

/// Any even d: pair by pair, as in rung 2.
__global__ void rope_cache_ragged(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                  const float* cosines, const float* sines, const int* position,
                                  const int* slot, __nv_bfloat16* q_out, __nv_bfloat16* k_cache,
                                  __nv_bfloat16* v_cache, int64_t hq, int64_t d, int64_t hk) {
  const int64_t token = blockIdx.x, half = d / 2;
  const int64_t angle = position[token] * half, row = slot[token];
  for (int64_t pair = threadIdx.x; pair < (hq + 2 * hk) * half; pair += blockDim.x) {
    const int64_t head = pair / half, i = pair % half;
    if (head >= hq + hk) {
      const int64_t x = (head - hq - hk) * d + i;
      v_cache[row * hk * d + x] = v[token * hk * d + x];
      v_cache[row * hk * d + x + half] = v[token * hk * d + x + half];
      continue;
    }
    const bool query = head < hq;
    const __nv_bfloat16* from = query ? q + (token * hq + head) * d : k + (token * hk + head - hq) * d;
    __nv_bfloat16* to = query ? q_out + (token * hq + head) * d : k_cache + (row * hk + head - hq) * d;
    const float c = cosines[angle + i], s = sines[angle + i];
    const float a = __bfloat162float(from[i]), b = __bfloat162float(from[i + half]);
    to[i] = __float2bfloat16(a * c - b * s);
    to[i + half] = __float2bfloat16(b * c + a * s);
  }
}

extern "C" void launch(const __nv_bfloat16* q /*[tokens,hq,d]*/, const __nv_bfloat16* k /*[tokens,hk,d]*/,
                       const __nv_bfloat16* v /*[tokens,hk,d]*/, const float* cos /*[4096,d / 2]*/,
                       const float* sin /*[4096,d / 2]*/, const int32_t* position /*[tokens]*/,
                       const int32_t* slot /*[tokens]*/, __nv_bfloat16* q_out /*[tokens,hq,d]*/,
                       __nv_bfloat16* k_cache /*[tokens,hk,d]*/, __nv_bfloat16* v_cache /*[tokens,hk,d]*/,
                       int64_t tokens, int64_t hq, int64_t d, int64_t hk, void* /*workspace*/,
                       cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(tokens);
  if (d % 16 != 0 || d > 16 * kThreads) {
    rope_cache_ragged<<<blocks, kThreads, 0, stream>>>(q, k, v, cos, sin, position, slot, q_out, k_cache,
                                                       v_cache, hq, d, hk);
    return;
  }
  const unsigned chunks = static_cast<unsigned>(d / 16);
  const unsigned groups = std::min(kThreads / chunks, static_cast<unsigned>(hq + 2 * hk));
  rope_cache<<<blocks, dim3(chunks, groups), 0, stream>>>(q, k, v, cos, sin, position, slot, q_out, k_cache,
                                                          v_cache, static_cast<int>(hq), static_cast<int>(d),
                                                          static_cast<int>(hk));
}
