// Rung 2: a warp a row, the table in shared memory.
//
// Changed     lanes stand along k: a lane takes a block of 16 codes with one 8-byte load, 256 bytes in a row
//             for the warp. The table lies in shared memory, one number in each of sixteen banks: different
//             codes are different banks, equal codes are one answer, so a look-up of a warp never waits for
//             itself.
// Why         rung 1 uses one byte of each sector that it loads, and its look-ups queue up.
// Prediction  2 look-ups for each weight, 32 in a cycle: 7.3 million cycles over 132 multiprocessors, 32 us,
//             if nothing else took time. Shifts, masks and products are as many instructions again: 60 us.
// Came        60.9 us on an H100, 1084 GB/s, 21.1 times the rung before. 576 % of the native baseline.
//
// Shapes      a [l, m, k] e2m1x2, sfa [l, m, k/16] e4m3, x [l, k] e2m1x2, sfx [l, k/16] e4m3, y [l, m] bf16.
// Launch      <<<(m / 8, l), 256>>>.
// Resources   about 40 registers; 64 bytes of shared memory.
// Cost        2 l m k FLOPs; 0.5625 l (m + 1) k + 2 l m bytes.
// Divides     any k that is a multiple of 16.
// Source      this project.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWarps = 8, kBlock = 16;

/// The sum of eight products.
__device__ float products(const float* numbers, unsigned codes, unsigned others) {
  float sum = 0;
#pragma unroll
  for (int shift = 0; shift < 32; shift += 4)
    sum += numbers[codes >> shift & 15u] * numbers[others >> shift & 15u];
  return sum;
}

__global__ void __launch_bounds__(kWarps * 32)
    gemv(const uint2* __restrict__ a, const __nv_fp8_e4m3* __restrict__ sfa, const uint2* __restrict__ x,
         const __nv_fp8_e4m3* __restrict__ sfx, __nv_bfloat16* __restrict__ y, int64_t m, int64_t blocks) {
  __shared__ float numbers[16];
  if (threadIdx.x < 16) {
    const unsigned size = threadIdx.x % 8;  // 0, 1, 2, 3, 4, 6, 8, 12 halves
    const float halves = size < 4 ? size : static_cast<float>((2 + size % 2) << (size / 2 - 1));
    numbers[threadIdx.x] = threadIdx.x < 8 ? halves / 2 : -halves / 2;
  }
  __syncthreads();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32, matrix = blockIdx.y;
  if (row >= m) return;
  a += (matrix * m + row) * blocks, sfa += (matrix * m + row) * blocks;
  x += matrix * blocks, sfx += matrix * blocks;
  float sum = 0;
  for (int64_t block = threadIdx.x % 32; block < blocks; block += 32) {
    const uint2 codes = a[block], others = x[block];
    sum += (products(numbers, codes.x, others.x) + products(numbers, codes.y, others.y)) *
           (static_cast<float>(sfa[block]) * static_cast<float>(sfx[block]));
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) y[matrix * m + row] = __float2bfloat16(sum);
}

extern "C" void launch(const __nv_fp4x2_e2m1* a /*[l,m,k]*/, const __nv_fp8_e4m3* sfa /*[l,m,k / 16]*/,
                       const __nv_fp4x2_e2m1* x /*[l,k]*/, const __nv_fp8_e4m3* sfx /*[l,k / 16]*/,
                       __nv_bfloat16* y /*[l,m]*/, int64_t l, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((m + kWarps - 1) / kWarps), static_cast<unsigned>(l));
  gemv<<<grid, kWarps * 32, 0, stream>>>(reinterpret_cast<const uint2*>(a), sfa,
                                         reinterpret_cast<const uint2*>(x), sfx, y, m, k / kBlock);
}
