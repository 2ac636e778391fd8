// Rung 2: the bits of fp16 are the code.
//
// Changed     two 16-byte loads and one 8-byte store a thread. The maximum works on pairs of bf16. One
//             reciprocal a block, times 2^-14, takes the place of 16 divisions. x times that goes to fp16,
//             two numbers in a word; there bits 9 to 11 are the code, and an integer addition rounds to
//             nearest even.
// Why         e2m1 has the exponent bias 1: its smallest normal number is 1.0, its only subnormal one 0.5.
//             In fp16 2^-14 and 2^-15 are that. So the conversion to fp16, one instruction, puts exponent
//             and mantissa in place, subnormal or not. A product with a rounded reciprocal can miss a tie by
//             2^-23; the rounding to fp16 brings it back, and anything else is at least 2^-8 away.
// Prediction  about 10 instructions a number, so the memory decides: 172 MB, 60 us, less what the accesses
//             cost: neighbouring lanes read 32 bytes apart, and each load fetches every sector half used.
// Came        55.6 us on an H100, 3091 GB/s, 3.89 times the rung before. 365 % of the native baseline.
//
// Shapes      x [rows, cols] bf16, codes [rows, cols] e2m1x2, scales [rows, cols/16] e4m3.
// Launch      <<<rows * cols / 16 / 256, 256>>>.
// Resources   about 32 registers; no shared memory.
// Cost        3 * rows * cols FLOPs; 2.5625 * rows * cols bytes.
// Divides     cols % 16 == 0 (the problem says so); blocks are counted through all rows.
// Source      this project.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256, kBlock = 16;

/// Two bf16 in a word, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

/// The larger sizes of two pairs of bf16. Without signs their bits have the order of the numbers.
__device__ unsigned larger_sizes(unsigned a, unsigned b) {
  const __nv_bfloat162 most = __hmax2(__habs2(*reinterpret_cast<const __nv_bfloat162*>(&a)),
                                      __habs2(*reinterpret_cast<const __nv_bfloat162*>(&b)));
  return *reinterpret_cast<const unsigned*>(&most);
}

/// Codes of two numbers in the low four bits of both halves of a word. `factor`: 2^-14 / scale.
__device__ unsigned pair_of_codes(float first, float second, float factor) {
  const __half2 halves = __floats2half2_rn(first * factor, second * factor);
  const unsigned bits = *reinterpret_cast<const unsigned*>(&halves);
  const unsigned six = 0x0e000e00u;  // 6 * 2^-14 in fp16, twice
  const __half2 clamped = __hmin2(__habs2(halves), *reinterpret_cast<const __half2*>(&six));
  unsigned size = *reinterpret_cast<const unsigned*>(&clamped);
  size += 0x00ff00ffu + (size >> 9 & 0x00010001u);  // nine bits are rounded away, to nearest even
  return (size >> 9 & 0x00070007u) | (bits >> 12 & 0x00080008u);
}

/// Codes of eight numbers, two in a word: the first in the lowest bits.
__device__ unsigned codes_of(const uint4& x, float factor) {
  return pair_of_codes(low(x.x), low(x.z), factor) | pair_of_codes(high(x.x), high(x.z), factor) << 4 |
         pair_of_codes(low(x.y), low(x.w), factor) << 8 | pair_of_codes(high(x.y), high(x.w), factor) << 12;
}

__global__ void __launch_bounds__(kThreads) quantise(const uint4* __restrict__ x, uint2* __restrict__ codes,
                                                     __nv_fp8_e4m3* __restrict__ scales, int64_t blocks) {
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (block >= blocks) return;
  const uint4 a = x[2 * block], b = x[2 * block + 1];
  const unsigned pairs = larger_sizes(larger_sizes(larger_sizes(a.x, a.y), larger_sizes(a.z, a.w)),
                                      larger_sizes(larger_sizes(b.x, b.y), larger_sizes(b.z, b.w)));
  const float largest = fmaxf(low(pairs), high(pairs));
  const __nv_fp8_e4m3 scale(largest * (1.0f / 6));  // no tie of a scale is missed: all 126 were tried
  scales[block] = scale;
  const float divisor = static_cast<float>(scale);
  const float factor = divisor > 0 ? __fdividef(0x1p-14f, divisor) : 0.0f;
  codes[block] = make_uint2(codes_of(a, factor), codes_of(b, factor));
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, __nv_fp4x2_e2m1* codes /*[rows,cols]*/,
                       __nv_fp8_e4m3* scales /*[rows,cols / 16]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const int64_t blocks = rows * cols / kBlock;
  quantise<<<static_cast<unsigned>((blocks + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(x), reinterpret_cast<uint2*>(codes), scales, blocks);
}
