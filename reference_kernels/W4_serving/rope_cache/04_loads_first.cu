// Rung 4: several tokens a block, and all loads of a thread are in flight before its first store.
//
// Changed     a thread owns the same eight pairs of kHeads heads. It issues the loads of all of them, which
//             need neither position nor slot, then waits for the tables, rotates, and stores. A block owns as
//             many tokens as fill about 256 threads. q, k and v are read as streams.
// Why         in rung 3 a thread first waits for position, then for the tables, and only then asks for its
//             first 32 bytes of q; and it asks for the next head after it has stored the last one.
// Prediction  a thread has 96 bytes of q, k, v and 64 of tables in flight, a multiprocessor with 1024 threads
//             98 KB; latency x bandwidth is about 26 KB. Expect 90 % of a copy: 52 us.
// Came        52.8 us, 94 % of a copy, but 0.96x rung 3: rung 3 has enough loads in flight with its many small
//             blocks. Other warps hide what a thread waits for.
//
// Shapes      q, q_out [tokens, hq, d]; k, v, k_cache, v_cache [tokens, hk, d], bf16; cos, sin [4096, d/2],
//             fp32; position, slot [tokens]; d even.
// Launch      <<<ceil(tokens / together), chunks x groups x together>>>: chunks = d/16, `groups` groups with
//             kHeads heads each, `together` tokens.
// Resources   64 registers; no shared memory, no workspace.
// Cost        3 FLOPs an element of q and k; 4 * tokens * (hq + 2 hk) * d bytes.
// Divides     d % 16 == 0 and at most 1024 threads a token for the fast path; any other shape takes the
//             kernel of rung 2.
// Source      Little's law (bytes in flight = latency x bandwidth).
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

constexpr int kThreads = 256;     // of a block, if the heads of a token need fewer
constexpr int kMostThreads = 1024;
constexpr int kHeads = 3;         // of a thread

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

__global__ void __launch_bounds__(kMostThreads)
    rope_cache(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k,
               const __nv_bfloat16* __restrict__ v, const float* __restrict__ cosines,
               const float* __restrict__ sines, const int* __restrict__ position,
               const int* __restrict__ slot, __nv_bfloat16* __restrict__ q_out,
               __nv_bfloat16* __restrict__ k_cache, __nv_bfloat16* __restrict__ v_cache, int64_t tokens,
               int hq, int d, int hk) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
  if (token >= tokens) return;
  const int half = d / 2, i = 8 * threadIdx.x, heads = hq + 2 * hk, groups = blockDim.y;
  const int64_t place = position[token], row = slot[token];

  uint4 left[kHeads], right[kHeads];
#pragma unroll
  for (int n = 0; n < kHeads; ++n) {
    const int head = threadIdx.y + n * groups;
    if (head >= heads) continue;
    const __nv_bfloat16* from = head < hq        ? q + (token * hq + head) * d
                                : head < hq + hk ? k + (token * hk + head - hq) * d
                                                 : v + (token * hk + head - hq - hk) * d;
    left[n] = __ldcs(reinterpret_cast<const uint4*>(from + i));
    right[n] = __ldcs(reinterpret_cast<const uint4*>(from + i + half));
  }
  const Eight c = load_eight(cosines + place * half + i), s = load_eight(sines + place * half + i);

#pragma unroll
  for (int n = 0; n < kHeads; ++n) {
    const int head = threadIdx.y + n * groups;
    if (head >= heads) continue;
    if (head < hq + hk) {
      rotate(left[n].x, right[n].x, c, s, 0);
      rotate(left[n].y, right[n].y, c, s, 2);
      rotate(left[n].z, right[n].z, c, s, 4);
      rotate(left[n].w, right[n].w, c, s, 6);
    }
    __nv_bfloat16* to = head < hq        ? q_out + (token * hq + head) * d
                        : head < hq + hk ? k_cache + (row * hk + head - hq) * d
                                         : v_cache + (row * hk + head - hq - hk) * d;
    *reinterpret_cast<uint4*>(to + i) = left[n];
    *reinterpret_cast<uint4*>(to + i + half) = right[n];
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
  const int64_t chunks = d / 16, groups = (hq + 2 * hk + kHeads - 1) / kHeads;
  if (d % 16 != 0 || chunks * groups > kMostThreads) {
    rope_cache_ragged<<<static_cast<unsigned>(tokens), kThreads, 0, stream>>>(
        q, k, v, cos, sin, position, slot, q_out, k_cache, v_cache, hq, d, hk);
    return;
  }
  const int64_t together = std::clamp<int64_t>(kThreads / (chunks * groups), 1, 64);
  const dim3 block(static_cast<unsigned>(chunks), static_cast<unsigned>(groups),
                   static_cast<unsigned>(together));
  rope_cache<<<static_cast<unsigned>((tokens + together - 1) / together), block, 0, stream>>>(
      q, k, v, cos, sin, position, slot, q_out, k_cache, v_cache, tokens, static_cast<int>(hq),
      static_cast<int>(d), static_cast<int>(hk));
}
