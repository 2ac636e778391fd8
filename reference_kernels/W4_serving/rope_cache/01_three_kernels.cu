// Rung 1: one kernel for each step: rotate q, rotate k, write k and v into the cache.
//
// Changed     nothing yet: the direct translation. The rotated k waits in the workspace.
// Why         this is how a model's source reads, and how eager frameworks run it (they need even more
//             kernels, for the gather of the tables and for each product).
// Prediction  q moves twice, k four times, v twice: 235 MB at the measured size, 55 us at the speed of a
//             copy. 2-byte accesses, and two table loads a pair, will not reach it: expect 100 us.
//
// Shapes      q, q_out [tokens, hq, d]; k, v, k_cache, v_cache [tokens, hk, d], bf16; cos, sin [4096, d/2],
//             fp32; position, slot [tokens]; d even.
// Launch      <<<tokens, 256>>> three times; a thread takes one pair of a head, or one element of the copy.
// Resources   about 32 registers; workspace tokens * hk * d * 2 bytes.
// Cost        3 FLOPs an element of q and k; 4 * tokens * (hq + 3 hk) * d bytes.
// Divides     no divisibility beyond an even d.
// Source      J. Su et al., RoFormer (2021); the arrangement in halves is that of GPT-NeoX and Llama.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256;

/// out = x rotated by the angle of each token's position: pairs are (i, i + d/2).
__global__ void rotate(const __nv_bfloat16* x, const float* cosines, const float* sines, const int* position,
                       __nv_bfloat16* out, int64_t heads, int64_t d) {
  const int64_t token = blockIdx.x, half = d / 2;
  for (int64_t pair = threadIdx.x; pair < heads * half; pair += kThreads) {
    const int64_t head = pair / half, i = pair % half;
    const int64_t left = (token * heads + head) * d + i, right = left + half;
    const float c = cosines[position[token] * half + i], s = sines[position[token] * half + i];
    const float a = __bfloat162float(x[left]), b = __bfloat162float(x[right]);
    out[left] = __float2bfloat16(a * c - b * s);
    out[right] = __float2bfloat16(b * c + a * s);
  }
}

__global__ void write_cache(const __nv_bfloat16* k, const __nv_bfloat16* v, const int* slot,
                            __nv_bfloat16* k_cache, __nv_bfloat16* v_cache, int64_t row) {
  const int64_t from = blockIdx.x * row, to = slot[blockIdx.x] * row;
  for (int64_t i = threadIdx.x; i < row; i += kThreads) {
    k_cache[to + i] = k[from + i];
    v_cache[to + i] = v[from + i];
  }
}

extern "C" size_t workspace_bytes(int64_t tokens, int64_t /*hq*/, int64_t d, int64_t hk) {
  return static_cast<size_t>(tokens * hk * d) * sizeof(__nv_bfloat16);
}

extern "C" void launch(const __nv_bfloat16* q /*[tokens,hq,d]*/, const __nv_bfloat16* k /*[tokens,hk,d]*/,
                       const __nv_bfloat16* v /*[tokens,hk,d]*/, const float* cos /*[4096,d / 2]*/,
                       const float* sin /*[4096,d / 2]*/, const int32_t* position /*[tokens]*/,
                       const int32_t* slot /*[tokens]*/, __nv_bfloat16* q_out /*[tokens,hq,d]*/,
                       __nv_bfloat16* k_cache /*[tokens,hk,d]*/, __nv_bfloat16* v_cache /*[tokens,hk,d]*/,
                       int64_t tokens, int64_t hq, int64_t d, int64_t hk, void* workspace,
                       cudaStream_t stream) {
  __nv_bfloat16* rotated = static_cast<__nv_bfloat16*>(workspace);
  const unsigned blocks = static_cast<unsigned>(tokens);
  rotate<<<blocks, kThreads, 0, stream>>>(q, cos, sin, position, q_out, hq, d);
  rotate<<<blocks, kThreads, 0, stream>>>(k, cos, sin, position, rotated, hk, d);
  write_cache<<<blocks, kThreads, 0, stream>>>(rotated, v, slot, k_cache, v_cache, hk * d);
}
