// cause: stale_tile
// mistake: every step loads the first tile of a again; only b advances along k.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TILE = 32;

__global__ void matmul(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  __shared__ float sa[TILE * TILE];
  __shared__ float sb[TILE * TILE];
  const int tx = threadIdx.x % TILE;
  const int ty = threadIdx.x / TILE;
  const int64_t row = blockIdx.y * TILE + ty;
  const int64_t col = blockIdx.x * TILE + tx;
  float result = 0.0f;
  for (int64_t start = 0; start < k; start += TILE) {
    sa[ty * TILE + tx] = row < m && start + tx < k ? a[row * k + tx] : 0.0f;
    sb[ty * TILE + tx] = start + ty < k && col < n ? b[(start + ty) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) result += sa[ty * TILE + i] * sb[i * TILE + tx];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = result;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  matmul<<<grid, TILE * TILE, 0, stream>>>(a, b, c, m, k, n);
}
