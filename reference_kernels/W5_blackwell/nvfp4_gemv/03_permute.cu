// Rung 3: one byte permutation decodes four codes; integer products.
//
// Changed     twice an FP4 number is an integer from -12 to 12, so four of them fit a register and dp4a
//             multiplies and adds them exactly. `prmt` picks four bytes out of eight by four selectors of 4
//             bits: the lower three bits choose the byte, and the fourth asks for its sign instead, eight
//             times. The eight bytes are 0, 1, 2, 3, 4, 6, 8, 12 and the selectors are the codes as they lie
//             in memory: a positive code picks its number, and a negative one picks the sign of a positive
//             number, which is 0. The same with inverted signs picks the negative ones. The vector is decoded
//             once for each block of rows and waits in shared memory. A warp has two rows, and a lane 16
//             bytes of each at a time.
// Why         rung 2 spends two look-ups and about six other instructions on each weight; here it is 5 for
//             four weights.
// Prediction  about 2 instructions a weight with everything: memory-bound, 25 us.
// Came        36.9 us on an H100, 1790 GB/s, 1.65 times the rung before. 951 % of the native baseline.
//
// Shapes      a [l, m, k] e2m1x2, sfa [l, m, k/16] e4m3, x [l, k] e2m1x2, sfx [l, k/16] e4m3, y [l, m] bf16.
// Launch      <<<(m / 16, l), 256>>>; k + k/4 bytes of shared memory, in pieces of at most 16384 columns.
// Resources   about 48 registers; 20 KB of shared memory.
// Cost        2 l m k FLOPs; 0.5625 l (m + 1) k + 2 l m bytes.
// Divides     k % 32 == 0 (the problem says so).
// Source      PTX ISA, prmt.b32 (default mode) and dp4a; the rest this project.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWarps = 8, kRowsOfWarp = 2, kRows = kWarps * kRowsOfWarp, kBlock = 16;
constexpr int kPiece = 16384;  // columns of the vector in shared memory

/// Twice the numbers of the four codes in the lower half of `codes`, as bytes; those with a sign are 0.
__device__ int positive(unsigned codes) {
  int bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(0x03020100), "r"(0x0c080604), "r"(codes));
  return bytes;
}
/// The sizes of those with a sign.
__device__ int negative(unsigned codes) { return positive(codes ^ 0x8888u); }

/// The four codes in the lower half of `codes` as signed bytes, twice their value.
__device__ int both(unsigned codes) {
  const unsigned size = static_cast<unsigned>(negative(codes));
  return positive(codes) |
         static_cast<int>((0x80808080u - size) ^ 0x80808080u);  // no byte borrows from the next
}

/// Four times the sum of eight products. x: eight signed bytes.
__device__ int products(unsigned codes, const int2& x) {
  const int plus = __dp4a(positive(codes >> 16), x.y, __dp4a(positive(codes), x.x, 0));
  return plus - __dp4a(negative(codes >> 16), x.y, __dp4a(negative(codes), x.x, 0));
}

__global__ void __launch_bounds__(kWarps * 32)
    gemv(const uint4* __restrict__ a, const __nv_fp8_e4m3* __restrict__ sfa, const unsigned* __restrict__ x,
         const __nv_fp8_e4m3* __restrict__ sfx, __nv_bfloat16* __restrict__ y, int64_t m, int64_t k) {
  __shared__ __align__(16) int2 numbers[kPiece / 8];
  __shared__ float2 scales[kPiece / kBlock / 2];
  const int64_t matrix = blockIdx.y,
                row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / 32 * kRowsOfWarp;
  x += matrix * (k / 8), sfx += matrix * (k / kBlock);
  float sum[kRowsOfWarp] = {};
  for (int64_t first = 0; first < k; first += kPiece) {
    const int columns = static_cast<int>(k - first < kPiece ? k - first : kPiece);
    if (first > 0) __syncthreads();  // the piece before is read
    for (int i = threadIdx.x; i < columns / 8; i += kWarps * 32) {
      const unsigned codes = x[first / 8 + i];
      numbers[i] = make_int2(both(codes), both(codes >> 16));
    }
    for (int i = threadIdx.x; i < columns / kBlock; i += kWarps * 32)
      reinterpret_cast<float*>(scales)[i] = static_cast<float>(sfx[first / kBlock + i]) / 4;
    __syncthreads();
    for (int i = threadIdx.x % 32; i < columns / 32; i += 32) {
      const int2 n0 = numbers[4 * i], n1 = numbers[4 * i + 1], n2 = numbers[4 * i + 2],
                 n3 = numbers[4 * i + 3];
      const float2 scale = scales[i];
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const int64_t at =
            matrix * m + (row + r < m ? row + r : m - 1);  // rows behind the last are not stored
        const uint4 codes = a[at * (k / 32) + first / 32 + i];
        const __nv_fp8_e4m3* own = sfa + at * (k / kBlock) + first / kBlock + 2 * i;
        sum[r] += static_cast<float>(products(codes.x, n0) + products(codes.y, n1)) *
                  (scale.x * static_cast<float>(own[0]));
        sum[r] += static_cast<float>(products(codes.z, n2) + products(codes.w, n3)) *
                  (scale.y * static_cast<float>(own[1]));
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
    for (int offset = 16; offset > 0; offset /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], offset);
    if (threadIdx.x % 32 == 0 && row + r < m) y[matrix * m + row + r] = __float2bfloat16(sum[r]);
  }
}

extern "C" void launch(const __nv_fp4x2_e2m1* a /*[l,m,k]*/, const __nv_fp8_e4m3* sfa /*[l,m,k / 16]*/,
                       const __nv_fp4x2_e2m1* x /*[l,k]*/, const __nv_fp8_e4m3* sfx /*[l,k / 16]*/,
                       __nv_bfloat16* y /*[l,m]*/, int64_t l, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((m + kRows - 1) / kRows), static_cast<unsigned>(l));
  gemv<<<grid, kWarps * 32, 0, stream>>>(reinterpret_cast<const uint4*>(a), sfa,
                                         reinterpret_cast<const unsigned*>(x), sfx, y, m, k);
}
