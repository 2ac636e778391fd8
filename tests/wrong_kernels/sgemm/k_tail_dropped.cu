// cause: partial_reduction
// mistake: the number of tiles is k / 16 rounded down, so the last k % 16 products are not summed.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 16;

__global__ void sgemm_tiles(const float* a, const float* b, float* c, int m, int k, int n) {
  __shared__ float as[kTile][kTile];
  __shared__ float bs[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int col = blockIdx.x * kTile + threadIdx.x;
  const int tiles = k / kTile;
  float acc = 0.0f;
  for (int t = 0; t < tiles; ++t) {
    const int p = t * kTile;
    as[threadIdx.y][threadIdx.x] = row < m && p + threadIdx.x < k ? a[row * k + p + threadIdx.x] : 0.f;
    bs[threadIdx.y][threadIdx.x] = col < n && p + threadIdx.y < k ? b[(p + threadIdx.y) * n + col] : 0.f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) acc += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = acc;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  sgemm_tiles<<<grid, block, 0, stream>>>(a, b, c, (int)m, (int)k, (int)n);
}
