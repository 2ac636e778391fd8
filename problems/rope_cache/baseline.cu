// Native baseline: the way serving libraries run it, in two kernels.
//
// The first rotates q and k, 16 bytes at a time, a block a token; the rotated k goes to the workspace (a library rotates
// in place, which moves the same bytes). The second copies k and v to the slots of the cache. Each kernel is as good as
// that division allows. What is left to win is the detour of k and a launch.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 128;

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ unsigned pack(float a, float b) {
  return __bfloat16_as_ushort(__float2bfloat16(a)) |
         static_cast<unsigned>(__bfloat16_as_ushort(__float2bfloat16(b))) << 16;
}

/// Rotates two pairs of a head: words of the left half and of the right half.
__device__ void rotate(unsigned& left, unsigned& right, float c0, float c1, float s0, float s1) {
  const float a0 = low(left), a1 = high(left), b0 = low(right), b1 = high(right);
  left = pack(a0 * c0 - b0 * s0, a1 * c1 - b1 * s1);
  right = pack(b0 * c0 + a0 * s0, b1 * c1 + a1 * s1);
}

/// `kVector` needs d % 16 == 0, so that both halves start on 16 bytes.
template <bool kVector>
__global__ void rotary(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k,
                       const float* __restrict__ cosines, const float* __restrict__ sines,
                       const int* __restrict__ position, __nv_bfloat16* __restrict__ q_out,
                       __nv_bfloat16* __restrict__ k_out, int64_t hq, int64_t d, int64_t hk) {
  const int64_t token = blockIdx.x, half = d / 2;
  const float* c = cosines + position[token] * half;
  const float* s = sines + position[token] * half;
  constexpr int kWide = kVector ? 8 : 1;
  const int64_t chunks = half / kWide;
  for (int64_t item = threadIdx.x; item < (hq + hk) * chunks; item += kThreads) {
    const int64_t head = item / chunks, i = item % chunks * kWide;
    const int64_t at = head < hq ? (token * hq + head) * d + i : (token * hk + head - hq) * d + i;
    const __nv_bfloat16* from = (head < hq ? q : k) + at;
    __nv_bfloat16* to = (head < hq ? q_out : k_out) + at;
    if constexpr (kVector) {
      uint4 left = *reinterpret_cast<const uint4*>(from), right = *reinterpret_cast<const uint4*>(from + half);
      const float4 c0 = *reinterpret_cast<const float4*>(c + i), c1 = *reinterpret_cast<const float4*>(c + i + 4);
      const float4 s0 = *reinterpret_cast<const float4*>(s + i), s1 = *reinterpret_cast<const float4*>(s + i + 4);
      rotate(left.x, right.x, c0.x, c0.y, s0.x, s0.y);
      rotate(left.y, right.y, c0.z, c0.w, s0.z, s0.w);
      rotate(left.z, right.z, c1.x, c1.y, s1.x, s1.y);
      rotate(left.w, right.w, c1.z, c1.w, s1.z, s1.w);
      *reinterpret_cast<uint4*>(to) = left;
      *reinterpret_cast<uint4*>(to + half) = right;
    } else {
      const float a = __bfloat162float(from[0]), b = __bfloat162float(from[half]);
      to[0] = __float2bfloat16(a * c[i] - b * s[i]);
      to[half] = __float2bfloat16(b * c[i] + a * s[i]);
    }
  }
}

/// Copies the rows of k and v to their slots; `Word` is uint4 where rows are whole ones, else a bf16.
template <class Word>
__global__ void write_cache(const Word* __restrict__ k, const Word* __restrict__ v, const int* __restrict__ slot,
                            Word* __restrict__ k_cache, Word* __restrict__ v_cache, int64_t words) {
  const int64_t from = blockIdx.x * words, to = slot[blockIdx.x] * words;
  for (int64_t i = threadIdx.x; i < words; i += kThreads) {
    const Word key = k[from + i], value = v[from + i];
    k_cache[to + i] = key;
    v_cache[to + i] = value;
  }
}

}  // namespace

extern "C" const char* baseline_label() { return "native: 2 kernels as in serving libraries (rotary, cache write), bf16"; }

extern "C" size_t workspace_bytes(int64_t tokens, int64_t /*hq*/, int64_t d, int64_t hk) {
  return static_cast<size_t>(tokens * hk * d) * sizeof(__nv_bfloat16);
}

extern "C" void launch(const __nv_bfloat16* q /*[tokens,hq,d]*/, const __nv_bfloat16* k /*[tokens,hk,d]*/,
                       const __nv_bfloat16* v /*[tokens,hk,d]*/, const float* cos /*[4096,d / 2]*/,
                       const float* sin /*[4096,d / 2]*/, const int32_t* position /*[tokens]*/,
                       const int32_t* slot /*[tokens]*/, __nv_bfloat16* q_out /*[tokens,hq,d]*/,
                       __nv_bfloat16* k_cache /*[tokens,hk,d]*/, __nv_bfloat16* v_cache /*[tokens,hk,d]*/,
                       int64_t tokens, int64_t hq, int64_t d, int64_t hk, void* workspace, cudaStream_t stream) {
  auto* rotated = static_cast<__nv_bfloat16*>(workspace);
  const unsigned blocks = static_cast<unsigned>(tokens);
  const auto rotate_both = d % 16 == 0 ? rotary<true> : rotary<false>;
  rotate_both<<<blocks, kThreads, 0, stream>>>(q, k, cos, sin, position, q_out, rotated, hq, d, hk);
  if (hk * d % 8 == 0) {
    const auto words = [](const __nv_bfloat16* p) { return reinterpret_cast<const uint4*>(p); };
    write_cache<uint4><<<blocks, kThreads, 0, stream>>>(words(rotated), words(v), slot, reinterpret_cast<uint4*>(k_cache),
                                                        reinterpret_cast<uint4*>(v_cache), hk * d / 8);
  } else {
    write_cache<__nv_bfloat16><<<blocks, kThreads, 0, stream>>>(rotated, v, slot, k_cache, v_cache, hk * d);
  }
}
