// Rung 3: lanes load side by side, then neighbours exchange a vector.
//
// Changed     a warp takes 32 blocks, 1 KB of x. Lane l loads vectors l and l + 32. Then neighbours exchange
//             one: the even lane gets the second half of its block, the odd one the first half of its own.
// Why         in rung 2 neighbouring lanes read 32 bytes apart, so each load of a warp touches 32 sectors for
//             half of their bytes and leaves the other half to the L1 cache.
// Prediction  the bytes from memory stay, the sectors that the L1 cache handles halve: 1.1 times rung 2. Two
//             lanes a block, without an exchange, would store 4 bytes a lane and lose that again.
//
// Shapes      x [rows, cols] bf16, codes [rows, cols] e2m1x2, scales [rows, cols/16] e4m3.
// Launch      <<<rows * cols / 16 / 256, 256>>>.
// Resources   about 32 registers; no shared memory.
// Cost        3 * rows * cols FLOPs; 2.5625 * rows * cols bytes.
// Divides     cols % 16 == 0 (the problem says so); blocks are counted through all rows.
// Source      the exchange is that of rmsnorm_fp8, rung 4.
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

/// The larger sizes of two pairs of bf16.
__device__ unsigned larger_sizes(unsigned a, unsigned b) {
  const __nv_bfloat162 most = __hmax2(__habs2(*reinterpret_cast<const __nv_bfloat162*>(&a)),
                                      __habs2(*reinterpret_cast<const __nv_bfloat162*>(&b)));
  return *reinterpret_cast<const unsigned*>(&most);
}

/// Codes of two numbers in the low four bits of both halves of a word. `factor`: 2^-14 / scale. In fp16 such
/// a number has its code in bits 9 to 11.
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

/// Gives `mine` to the neighbouring lane and takes its vector.
__device__ uint4 exchanged(uint4 mine) {
  mine.x = __shfl_xor_sync(0xffffffffu, mine.x, 1), mine.y = __shfl_xor_sync(0xffffffffu, mine.y, 1);
  mine.z = __shfl_xor_sync(0xffffffffu, mine.z, 1), mine.w = __shfl_xor_sync(0xffffffffu, mine.w, 1);
  return mine;
}

__global__ void __launch_bounds__(kThreads) quantise(const uint4* __restrict__ x, uint2* __restrict__ codes,
                                                     __nv_fp8_e4m3* __restrict__ scales, int64_t blocks) {
  const int lane = threadIdx.x % 32;
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x - lane;  // of the warp's blocks
  uint4 half[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int64_t i = 2 * first + 32 * h + lane;
    half[h] = i < 2 * blocks ? __ldcs(x + i) : make_uint4(0, 0, 0, 0);
  }
  const bool odd = lane % 2 == 1;
  const uint4 other = exchanged(odd ? half[0] : half[1]);
  const uint4 a = odd ? other : half[0], b = odd ? half[1] : other;
  const int64_t block = first + lane / 2 + (odd ? 16 : 0);
  if (block >= blocks) return;
  const unsigned pairs = larger_sizes(larger_sizes(larger_sizes(a.x, a.y), larger_sizes(a.z, a.w)),
                                      larger_sizes(larger_sizes(b.x, b.y), larger_sizes(b.z, b.w)));
  const __nv_fp8_e4m3 scale(fmaxf(low(pairs), high(pairs)) * (1.0f / 6));
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
