// Rung 1: C = A * B with one thread an element, written the way one writes it first.
//
// Changed     nothing yet: threadIdx.x is the row of C, threadIdx.y its column, as in the formula C[i][j].
// Why         a right answer to measure everything else against.
// Prediction  about 1 % of the library. Threads of a warp differ in threadIdx.x, so they read 32 different
//             rows of A and write 32 different rows of C: each access touches 32 sectors of which 4 bytes are
//             used.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes.
// Launch      blocks of 32 x 32 threads over (m, n).
// Resources   32 registers; no shared memory.
// Cost        2 * m * n * k FLOPs; 4 * (m * k + k * n + m * n) bytes at best, about 8 bytes per multiply-add
//             here.
// Divides     no divisibility is required.
// Source      the definition of a matrix product.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kBlock = 32;

__global__ void sgemm(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kBlock + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((m + kBlock - 1) / kBlock), static_cast<unsigned>((n + kBlock - 1) / kBlock));
  sgemm<<<grid, dim3(kBlock, kBlock), 0, stream>>>(a, b, c, m, k, n);
}
