// cause: stale_tile
// mistake: the next tile is loaded into the other buffer, but the product keeps reading buffer 0.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TILE = 16;

__global__ void sgemm_double_buffer(const float* a, const float* b, float* c, int m, int k, int n) {
  __shared__ float as[2][TILE][TILE];
  __shared__ float bs[2][TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  const int steps = (k + TILE - 1) / TILE;

  as[0][ty][tx] = row < m && tx < k ? a[row * k + tx] : 0.0f;
  bs[0][ty][tx] = ty < k && col < n ? b[ty * n + col] : 0.0f;
  __syncthreads();

  float acc = 0.0f;
  int buf = 0;
  for (int s = 0; s < steps; ++s) {
    if (s + 1 < steps) {
      const int p = (s + 1) * TILE;
      as[buf ^ 1][ty][tx] = row < m && p + tx < k ? a[row * k + p + tx] : 0.0f;
      bs[buf ^ 1][ty][tx] = p + ty < k && col < n ? b[(p + ty) * n + col] : 0.0f;
    }
    for (int i = 0; i < TILE; ++i) acc += as[buf][ty][i] * bs[buf][i][tx];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = acc;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 block(TILE, TILE);
  dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  sgemm_double_buffer<<<grid, block, 0, stream>>>(a, b, c, (int)m, (int)k, (int)n);
}
