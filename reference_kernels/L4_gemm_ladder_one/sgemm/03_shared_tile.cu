// Rung 3: the block works on tiles of A and B that it keeps in shared memory.
//
// Changed     a block of 32 x 32 threads loads a 32 x 32 tile of A and one of B, multiplies them from shared
//             memory, and goes on along k. Every loaded float is used 32 times.
// Why         in rung 2 each multiply-add asks the caches for two floats, and their bandwidth is the limit.
// Prediction  32x less traffic to L1 and L2, but still two shared-memory loads per multiply-add: about 1.5x
//             rung 2.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes (the tile is filled up with zeros at the
//             edges).
// Launch      blocks of 32 x 32 threads over (n, m).
// Resources   32 registers; 8 KB of shared memory: two blocks fill a multiprocessor's 2048 threads.
// Cost        2 * m * n * k FLOPs; m * n * k / 4 bytes of global loads (k / 32 tiles of 8 KB for 1024
//             results).
// Divides     no divisibility is required.
// Source      the tiled product of the CUDA C++ Programming Guide, chapter "Shared Memory".
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 32;

__global__ void __launch_bounds__(kTile* kTile)
    sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int64_t m, int64_t k,
          int64_t n) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + ty;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile + tx;

  float sum = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kTile) {
    a_tile[ty][tx] = row < m && k0 + tx < k ? a[row * k + k0 + tx] : 0.0f;
    b_tile[ty][tx] = k0 + ty < k && column < n ? b[(k0 + ty) * n + column] : 0.0f;
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += a_tile[ty][i] * b_tile[i][tx];
    __syncthreads();  // nobody needs them any more
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>((m + kTile - 1) / kTile));
  sgemm<<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, c, m, k, n);
}
