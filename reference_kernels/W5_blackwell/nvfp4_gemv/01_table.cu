// Rung 1: a thread a row, and a table of sixteen numbers.
//
// Changed     the first of the ladder: a thread walks along its row byte by byte, and each code picks its
//             number from a table in constant memory.
// Why         it is the definition. It is slow for three reasons: the rows of neighbouring lanes are 8 KB
//             apart, so a load of a warp touches 32 sectors for 32 bytes; a constant cache answers one
//             address at a time, and 32 lanes ask for up to sixteen; 7168 threads are 54 for each
//             multiprocessor.
// Prediction  2 look-ups for each of 117 million weights, about ten answers each, on 132 multiprocessors:
//             more than 10 ms.
// Came        1.29 ms on an H100, 51 GB/s. 27 % of the native baseline.
//
// Shapes      a [l, m, k] e2m1x2, sfa [l, m, k/16] e4m3, x [l, k] e2m1x2, sfx [l, k/16] e4m3, y [l, m] bf16.
// Launch      <<<(m / 64, l), 64>>>.
// Resources   about 32 registers; no shared memory.
// Cost        2 l m k FLOPs; 0.5625 l (m + 1) k + 2 l m bytes.
// Divides     any k that is a multiple of 16.
// Source      this project.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 64, kBlock = 16;

__constant__ float kNumbers[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};

__global__ void __launch_bounds__(kThreads)
    gemv(const uint8_t* __restrict__ a, const __nv_fp8_e4m3* __restrict__ sfa, const uint8_t* __restrict__ x,
         const __nv_fp8_e4m3* __restrict__ sfx, __nv_bfloat16* __restrict__ y, int64_t m, int64_t k) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, matrix = blockIdx.y;
  if (row >= m) return;
  a += (matrix * m + row) * (k / 2), sfa += (matrix * m + row) * (k / kBlock);
  x += matrix * (k / 2), sfx += matrix * (k / kBlock);
  float sum = 0;
  for (int64_t block = 0; block < k / kBlock; ++block) {
    float of_block = 0;
    for (int64_t i = block * kBlock / 2; i < (block + 1) * kBlock / 2; ++i)
      of_block += kNumbers[a[i] & 15] * kNumbers[x[i] & 15] + kNumbers[a[i] >> 4] * kNumbers[x[i] >> 4];
    sum += of_block * (static_cast<float>(sfa[block]) * static_cast<float>(sfx[block]));
  }
  y[matrix * m + row] = __float2bfloat16(sum);
}

extern "C" void launch(const __nv_fp4x2_e2m1* a /*[l,m,k]*/, const __nv_fp8_e4m3* sfa /*[l,m,k / 16]*/,
                       const __nv_fp4x2_e2m1* x /*[l,k]*/, const __nv_fp8_e4m3* sfx /*[l,k / 16]*/,
                       __nv_bfloat16* y /*[l,m]*/, int64_t l, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((m + kThreads - 1) / kThreads), static_cast<unsigned>(l));
  gemv<<<grid, kThreads, 0, stream>>>(reinterpret_cast<const uint8_t*>(a), sfa,
                                      reinterpret_cast<const uint8_t*>(x), sfx, y, m, k);
}
