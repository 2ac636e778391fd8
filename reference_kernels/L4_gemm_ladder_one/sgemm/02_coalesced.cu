// Rung 2: the same kernel with rows and columns exchanged between threadIdx.x and threadIdx.y.
//
// Changed     threadIdx.x now runs along a row of C. Nothing else.
// Why         the 32 threads of a warp have consecutive threadIdx.x. Along a row their reads of B and their
//             writes of C are 128 adjacent bytes (4 sectors instead of 32), and their reads of A are one
//             address, sent to all.
// Prediction  up to 8x fewer sectors per request: 5x to 8x rung 1.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes.
// Launch      blocks of 32 x 32 threads over (n, m).
// Resources   32 registers; no shared memory.
// Cost        2 * m * n * k FLOPs; one load of A (broadcast) and one of B a multiply-add, mostly served by L1
//             and L2.
// Divides     no divisibility is required.
// Source      global-memory coalescing, CUDA C++ Programming Guide; the step as in S. Boehm's SGEMM article,
//             2022.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kBlock = 32;

__global__ void sgemm(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kBlock + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kBlock - 1) / kBlock), static_cast<unsigned>((m + kBlock - 1) / kBlock));
  sgemm<<<grid, dim3(kBlock, kBlock), 0, stream>>>(a, b, c, m, k, n);
}
