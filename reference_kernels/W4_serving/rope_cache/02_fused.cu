// Rung 2: one kernel; k goes from its input straight to its slot.
//
// Changed     a block owns a token and does all three steps. The heads of q, k and v are one list: the first
//             hq are rotated into q_out, the next hk into the cache, the last hk are copied into the cache.
// Why         the slot of a token is known before its k is rotated, so there is no reason to store k twice.
// Prediction  k moves twice instead of four times: 201 MB instead of 235. With one launch instead of three
//             that is 1.25x rung 1, if both are limited by bytes; the narrow accesses remain.
//
// Shapes      q, q_out [tokens, hq, d]; k, v, k_cache, v_cache [tokens, hk, d], bf16; cos, sin [4096, d/2],
//             fp32; position, slot [tokens]; d even.
// Launch      <<<tokens, 256>>>; a thread takes pairs of heads with stride 256.
// Resources   about 40 registers; no shared memory, no workspace.
// Cost        3 FLOPs an element of q and k; 4 * tokens * (hq + 2 hk) * d bytes: all that has to move.
// Divides     no divisibility beyond an even d.
// Source      the fused rotary and cache kernels of serving engines (vLLM, TensorRT-LLM).
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void rope_cache(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                           const float* cosines, const float* sines, const int* position, const int* slot,
                           __nv_bfloat16* q_out, __nv_bfloat16* k_cache, __nv_bfloat16* v_cache, int64_t hq,
                           int64_t d, int64_t hk) {
  const int64_t token = blockIdx.x, half = d / 2;
  const int64_t angle = position[token] * half, row = slot[token];
  for (int64_t pair = threadIdx.x; pair < (hq + 2 * hk) * half; pair += kThreads) {
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
  rope_cache<<<static_cast<unsigned>(tokens), kThreads, 0, stream>>>(q, k, v, cos, sin, position, slot, q_out,
                                                                     k_cache, v_cache, hq, d, hk);
}
