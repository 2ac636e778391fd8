// Rung 4: exact products on the fp8 tensor cores, one column for each block of 16.
//
// Changed     an e2m1 code in bits 7 and 4 to 2 of a byte is an e4m3 number, 2^-6 times as large, zeros and
//             subnormals included. So two shifts and a few masks make operands of mma.sync out of eight
//             codes, and nothing is looked up. A product of the matrix with one vector would leave seven of
//             its eight columns empty; here column n holds only the n-th block of 16 numbers of the vector
//             and zeros elsewhere. After four products of depth 32 a result is the sum over one block, exact,
//             and takes its two scales: one multiplication for 16 weights. In what order a block's numbers
//             meet does not matter, so each lane uses its own 16 bytes as they come. A warp reads 256 columns
//             of 16 rows at a time, the warps of a thread block share its rows.
// Why         rung 3 spends five instructions on four weights and then multiplies; here it is seven for
//             eight, and a warp multiplies once for 512 weights.
// Prediction  as fast as the memory: 66 MB, 21 us.
// Came        37.2 us on an H100, 1777 GB/s, 0.99 times the rung before. 944 % of the native baseline.
//             Hopper's mma.sync has no fp8 unit: the machine code converts each operand to fp16 (F2FP) and
//             multiplies by HMMA. The conversions are the time.
//
// Shapes      a [l, m, k] e2m1x2, sfa [l, m, k/16] e4m3, x [l, k] e2m1x2, sfx [l, k/16] e4m3, y [l, m] bf16.
// Launch      <<<(m / 16, l), 32 * min(8, k / 512)>>>.
// Resources   about 60 registers; 512 bytes of shared memory.
// Cost        2 l m k FLOPs; 0.5625 l (m + 1) k + 2 l m bytes.
// Divides     k % 32 == 0 (the problem says so).
// Source      PTX ISA, mma.sync m16n8k32 for e4m3 and cvt.rn.f16x2.e4m3x2. Needs sm_89.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kMostWarps = 8, kRows = 16, kBlock = 16;
constexpr int kTile = 128;                         // columns of an accumulator: eight blocks of 16
constexpr int kTiles = 2, kStep = kTiles * kTile;  // of a warp at a time

/// Eight codes as e4m3 numbers, 2^-6 times as large: those with even places, and those with odd ones.
__device__ uint2 as_e4m3(unsigned codes) {
  return make_uint2((codes << 4 & 0x80808080u) | (codes << 2 & 0x1c1c1c1cu),
                    (codes & 0x80808080u) | (codes >> 2 & 0x1c1c1c1cu));
}

/// Two e4m3 numbers side by side.
__device__ float2 two_scales(const uint8_t* at) {
  unsigned halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(*reinterpret_cast<const unsigned short*>(at)));
  return __half22float2(*reinterpret_cast<const __half2*>(&halves));
}

/// d += a * b: 16 x 8 results, 32 deep, by one warp.
__device__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                         unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(kMostWarps * 32)
    gemv(const uint8_t* __restrict__ a, const uint8_t* __restrict__ sfa, const uint8_t* __restrict__ x,
         const uint8_t* __restrict__ sfx, __nv_bfloat16* __restrict__ y, int64_t m, int64_t k) {
  __shared__ float of_warps[kMostWarps][kRows];
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32, near = threadIdx.x % 4,
            far = threadIdx.x % 32 / 4;
  const int64_t matrix = blockIdx.y, row = static_cast<int64_t>(blockIdx.x) * kRows + far;
  const int64_t upper = matrix * m + (row < m ? row : m - 1),
                lower = matrix * m + (row + 8 < m ? row + 8 : m - 1);
  x += matrix * (k / 2), sfx += matrix * (k / kBlock);
  // Column `far` of the second operand holds block `far` of the tile. Lane `near` of a row has the blocks 2
  // near and 2 near + 1 of the first operand, in the lower and in the upper half of the depth.
  const unsigned even = far == 2 * near ? ~0u : 0u, odd = far == 2 * near + 1 ? ~0u : 0u;

  float2 sum = make_float2(0, 0);
  for (int64_t first = static_cast<int64_t>(warp) * kStep; first < k;
       first += static_cast<int64_t>(warps) * kStep) {
    uint4 above[kTiles], below[kTiles];
    uint2 vector[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {  // all loads first
      const int64_t column = first + t * kTile + near * 32, block = first + t * kTile + far * kBlock;
      const uint4 none = {};
      above[t] = column < k ? __ldcs(reinterpret_cast<const uint4*>(a + (upper * k + column) / 2)) : none;
      below[t] = column < k ? __ldcs(reinterpret_cast<const uint4*>(a + (lower * k + column) / 2)) : none;
      vector[t] = block < k ? *reinterpret_cast<const uint2*>(x + block / 2) : make_uint2(0, 0);
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const int64_t column = first + t * kTile + near * 32;
      const uint2 low = as_e4m3(vector[t].x), high = as_e4m3(vector[t].y);
      const unsigned others[4] = {low.x, low.y, high.x, high.y};
      const uint2 a0 = as_e4m3(above[t].x), a1 = as_e4m3(above[t].y), a2 = as_e4m3(above[t].z),
                  a3 = as_e4m3(above[t].w);
      const uint2 b0 = as_e4m3(below[t].x), b1 = as_e4m3(below[t].y), b2 = as_e4m3(below[t].z),
                  b3 = as_e4m3(below[t].w);
      float d[4] = {};
      multiply(d, a0.x, b0.x, a2.x, b2.x, others[0] & even, others[0] & odd);
      multiply(d, a0.y, b0.y, a2.y, b2.y, others[1] & even, others[1] & odd);
      multiply(d, a1.x, b1.x, a3.x, b3.x, others[2] & even, others[2] & odd);
      multiply(d, a1.y, b1.y, a3.y, b3.y, others[3] & even, others[3] & odd);
      if (column < k) {
        const float2 of_x = two_scales(sfx + column / kBlock);
        const float2 of_upper = two_scales(sfa + (upper * k + column) / kBlock);
        const float2 of_lower = two_scales(sfa + (lower * k + column) / kBlock);
        sum.x += d[0] * of_x.x * of_upper.x + d[1] * of_x.y * of_upper.y;
        sum.y += d[2] * of_x.x * of_lower.x + d[3] * of_x.y * of_lower.y;
      }
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
    y[matrix * m + own] = __float2bfloat16(total * 4096);  // both operands were 2^-6 times as large
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
      reinterpret_cast<const uint8_t*>(x), reinterpret_cast<const uint8_t*>(sfx), y, m, k);
}
