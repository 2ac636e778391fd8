// Native baseline: one kernel, a thread a block of 16, 16-byte loads, one 8-byte store. The rounding to FP4
// is the one of CUDA's header. On Blackwell it is one instruction for two numbers; before, it is a function
// that works on the bits of a double.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kThreads = 256, kBlock = 16;
constexpr float kLargest = 6;  // of e2m1

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

__global__ void __launch_bounds__(kThreads) quantise(const uint4* __restrict__ x, uint2* __restrict__ codes,
                                                     __nv_fp8_e4m3* __restrict__ scales, int64_t blocks) {
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (block >= blocks) return;
  const uint4 a = x[2 * block], b = x[2 * block + 1];
  const unsigned words[kBlock / 2] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
  float largest = 0;
#pragma unroll
  for (const unsigned word : words) largest = fmaxf(largest, fmaxf(fabsf(low(word)), fabsf(high(word))));
  const __nv_fp8_e4m3 scale(largest / kLargest);
  scales[block] = scale;
  const float divisor = static_cast<float>(scale);
  unsigned packed[2] = {};
#pragma unroll
  for (int i = 0; i < kBlock / 2; ++i) {
    const float2 quotient =
        divisor > 0 ? make_float2(low(words[i]) / divisor, high(words[i]) / divisor) : make_float2(0, 0);
    const unsigned pair = __nv_cvt_float2_to_fp4x2(quotient, __NV_E2M1, cudaRoundNearest);
    packed[i / 4] |= pair << (i % 4 * 8);
  }
  codes[block] = make_uint2(packed[0], packed[1]);
}

}  // namespace

extern "C" const char* baseline_label() { return "native: a thread a block, CUDA's conversion to FP4"; }

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, __nv_fp4x2_e2m1* codes /*[rows,cols]*/,
                       __nv_fp8_e4m3* scales /*[rows,cols / 16]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const int64_t blocks = rows * cols / kBlock;
  quantise<<<static_cast<unsigned>((blocks + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(x), reinterpret_cast<uint2*>(codes), scales, blocks);
}
