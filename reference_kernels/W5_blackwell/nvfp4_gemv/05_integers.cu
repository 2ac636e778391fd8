// Rung 5: integers on the tensor cores.
//
// Changed     the operands are bytes that hold twice the number, as in rung 3, and `mma.sync` multiplies them
//             as integers: one product takes the positive codes, a second one the sizes of the negative ones
//             with the vector's sign turned. The vector is decoded once for each thread block, into shared
//             memory, in both signs; where a lane's column is that of another block of 16, it reads zeros
//             instead. The block scales are loaded together with their codes, not when they are needed: the
//             first columns and their scales are on their way while the vector is decoded.
// Why         Hopper's `mma.sync` has no fp8 unit: each e4m3 operand of rung 4 becomes two fp16 numbers
//             first, 48 conversions (F2FP in the machine code) for 64 weights of a lane, and HMMA multiplies.
//             For integers there is IMMA. WGMMA has fp8 units, but wants the vector's columns in shared
//             memory and 64 rows.
// Prediction  1.6 instructions a weight, 2.7 are free at the memory's speed: 25 us.
// Came        36.1 us on an H100, 1829 GB/s, 1.03 times the rung before. 973 % of the native baseline. It is
//             not the instructions alone: loads, decoding and products of a warp take turns, and 27 warps of
//             a multiprocessor cover that only in part.
//
// Shapes      a [l, m, k] e2m1x2, sfa [l, m, k/16] e4m3, x [l, k] e2m1x2, sfx [l, k/16] e4m3, y [l, m] bf16.
// Launch      <<<(m / 16, l), 32 * min(8, k / 512)>>>.
// Resources   about 64 registers; 37 KB of shared memory.
// Cost        2 l m k FLOPs; 0.5625 l (m + 1) k + 2 l m bytes.
// Divides     k % 32 == 0 (the problem says so).
// Source      PTX ISA, mma.sync m16n8k32 for s8, prmt.b32 and cvt.rn.f16x2.e4m3x2. Needs sm_89.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kMostWarps = 8, kRows = 16, kBlock = 16;
constexpr int kTile = 128;                         // columns of an accumulator: eight blocks of 16
constexpr int kTiles = 2, kStep = kTiles * kTile;  // of a warp at a time
constexpr int kPiece = 16384;                      // columns of the vector in shared memory

/// Twice the numbers of the four codes in the lower half of `codes`, as bytes; those with a sign are 0.
__device__ unsigned positive(unsigned codes) {
  unsigned bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(0x03020100), "r"(0x0c080604), "r"(codes));
  return bytes;
}

/// Twice the numbers of the four codes in the lower half of `codes`, as signed bytes.
__device__ unsigned with_sign(unsigned codes) {
  const unsigned negative = 0x80808080u - positive(codes ^ 0x8888u);  // no byte borrows from the next
  return (negative ^ 0x80808080u) | positive(codes);
}

/// Two e4m3 numbers side by side, the first in the lower byte.
__device__ float2 two_scales(unsigned short bytes) {
  unsigned halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(bytes));
  return __half22float2(*reinterpret_cast<const __half2*>(&halves));
}

/// d += a * b: 16 x 8 results, 32 deep, by one warp.
__device__ void multiply(int (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                         unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// Products of one word of four rows' parts: above and below, of an even and an odd block; `plus` and `minus`
/// are the vector's numbers in both signs, in the lower and in the upper half of the depth.
__device__ void multiply_words(int (&d)[4], unsigned above, unsigned below, unsigned above_odd,
                               unsigned below_odd, unsigned plus, unsigned plus_odd, unsigned minus,
                               unsigned minus_odd) {
  multiply(d, positive(above), positive(below), positive(above_odd), positive(below_odd), plus, plus_odd);
  const unsigned turn = 0x88888888u;
  multiply(d, positive(above ^ turn), positive(below ^ turn), positive(above_odd ^ turn),
           positive(below_odd ^ turn), minus, minus_odd);
}

__global__ void __launch_bounds__(kMostWarps * 32, 4)
    gemv(const uint8_t* __restrict__ a, const uint8_t* __restrict__ sfa, const unsigned* __restrict__ x,
         const uint8_t* __restrict__ sfx, __nv_bfloat16* __restrict__ y, int64_t m, int64_t k) {
  __shared__ uint2
      numbers[2][(kPiece / kBlock + 1) * 2];  // 16 signed bytes; with their sign turned; the last: zeros
  __shared__ float2
      of_vector[kPiece / kBlock / 2];  // the vector's scales, a quarter: both operands are twice as large
  __shared__ float of_warps[kMostWarps][kRows];
  constexpr int kZeros = kPiece / kBlock * 2;
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32, near = threadIdx.x % 4,
            far = threadIdx.x % 32 / 4;
  const int64_t matrix = blockIdx.y, row = static_cast<int64_t>(blockIdx.x) * kRows + far;
  // Rows behind the last are read as the last one, and not stored.
  const int64_t upper = row < m ? row : m - 1, lower = row + 8 < m ? row + 8 : m - 1;
  x += matrix * (k / 8);
  // From here on a column is an int, and each pointer stands on the lane's first column of its row.
  const int columns = static_cast<int>(k), step = warps * kStep;
  a += ((matrix * m + upper) * k + near * 32) / 2, sfa += ((matrix * m + upper) * k + near * 32) / kBlock;
  const int64_t to_lower = (lower - upper) * k;
  sfx += matrix * (k / kBlock);
  uint4 above[kTiles], below[kTiles];
  unsigned short scales[kTiles][2];  // two scales each: of above, of below
  const auto fetch = [&](int first, int end) {
    const uint4 none = {};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const int column = first + t * kTile;
      const bool inside = column + near * 32 < end;
      above[t] = inside ? __ldcs(reinterpret_cast<const uint4*>(a + column / 2)) : none;
      below[t] = inside ? __ldcs(reinterpret_cast<const uint4*>(a + (column + to_lower) / 2)) : none;
      scales[t][0] = inside ? *reinterpret_cast<const unsigned short*>(sfa + column / kBlock) : 0;
      scales[t][1] =
          inside ? *reinterpret_cast<const unsigned short*>(sfa + (column + to_lower) / kBlock) : 0;
    }
  };
  if (threadIdx.x < 4) numbers[threadIdx.x / 2][kZeros + threadIdx.x % 2] = make_uint2(0, 0);

  float2 sum = make_float2(0, 0);
  for (int piece = 0; piece < columns; piece += kPiece) {
    const int end = columns - piece < kPiece ? columns : piece + kPiece;
    int first = piece + warp * kStep;
    fetch(first, end);               // on its way while the vector is decoded
    if (piece > 0) __syncthreads();  // the piece before is read
    for (int i = threadIdx.x; i < (end - piece) / 8; i += static_cast<int>(blockDim.x)) {
      const unsigned codes = x[piece / 8 + i], turned = codes ^ 0x88888888u;
      numbers[0][i] = make_uint2(with_sign(codes), with_sign(codes >> 16));
      numbers[1][i] = make_uint2(with_sign(turned), with_sign(turned >> 16));
    }
    for (int i = threadIdx.x; i < (end - piece) / 32; i += static_cast<int>(blockDim.x)) {
      const float2 two = two_scales(*reinterpret_cast<const unsigned short*>(sfx + piece / kBlock + 2 * i));
      of_vector[i] = make_float2(two.x / 4, two.y / 4);
    }
    __syncthreads();
    for (; first < end; first += step) {
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        const int column = first + t * kTile, block = ((column - piece) / kBlock + far) * 2;
        const bool inside = column + far * kBlock < end;
        // Column `far` of the second operand holds block `far` of the tile: lane `near` of a row has the
        // blocks 2 near and 2 near + 1 of the first operand, in the lower and in the upper half of the depth.
        const int even = inside && far == 2 * near ? block : kZeros,
                  odd = inside && far == 2 * near + 1 ? block : kZeros;
        const uint4 up = above[t], down = below[t];
        int d[4] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint2 plus = numbers[0][even + half], plus_odd = numbers[0][odd + half];
          const uint2 minus = numbers[1][even + half], minus_odd = numbers[1][odd + half];
          const unsigned u = half ? up.y : up.x, u_odd = half ? up.w : up.z;
          const unsigned v = half ? down.y : down.x, v_odd = half ? down.w : down.z;
          multiply_words(d, u, v, u_odd, v_odd, plus.x, plus_odd.x, minus.x, minus_odd.x);
          multiply_words(d, u >> 16, v >> 16, u_odd >> 16, v_odd >> 16, plus.y, plus_odd.y, minus.y,
                         minus_odd.y);
        }
        const float2 of_x =
            of_vector[column + near * 32 < end ? (column - piece) / 32 + near : 0];  // outside: times 0
        const float2 u = two_scales(scales[t][0]), v = two_scales(scales[t][1]);
        sum.x += static_cast<float>(d[0]) * of_x.x * u.x + static_cast<float>(d[1]) * of_x.y * u.y;
        sum.y += static_cast<float>(d[2]) * of_x.x * v.x + static_cast<float>(d[3]) * of_x.y * v.y;
      }
      fetch(first + step, end);
    }
  }
  for (int offset = 1; offset < 4; offset *= 2) {
    sum.x += __shfl_xor_sync(0xffffffffu, sum.x, offset);
    sum.y += __shfl_xor_sync(0xffffffffu, sum.y, offset);
  }
  if (near == 0) of_warps[warp][far] = sum.x, of_warps[warp][far + 8] = sum.y;
  __syncthreads();
  const int64_t own = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x;
  if (threadIdx.x < kRows && own < m) {
    float total = 0;
    for (int w = 0; w < warps; ++w) total += of_warps[w][threadIdx.x];
    y[matrix * m + own] = __float2bfloat16(total);
  }
}

extern "C" void launch(const __nv_fp4x2_e2m1* a /*[l,m,k]*/, const __nv_fp8_e4m3* sfa /*[l,m,k / 16]*/,
                       const __nv_fp4x2_e2m1* x /*[l,k]*/, const __nv_fp8_e4m3* sfx /*[l,k / 16]*/,
                       __nv_bfloat16* y /*[l,m]*/, int64_t l, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((m + kRows - 1) / kRows), static_cast<unsigned>(l));
  const int64_t warps = (k + 2 * kStep - 1) / (2 * kStep);
  gemv<<<grid, static_cast<unsigned>(warps < kMostWarps ? warps : kMostWarps) * 32, 0, stream>>>(
      reinterpret_cast<const uint8_t*>(a), reinterpret_cast<const uint8_t*>(sfa),
      reinterpret_cast<const unsigned*>(x), reinterpret_cast<const uint8_t*>(sfx), y, m, k);
}
