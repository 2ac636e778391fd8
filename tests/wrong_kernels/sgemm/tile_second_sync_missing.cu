// cause: race
// line: 20
// mistake: there is no barrier after the inner product: fast threads overwrite tiles that others still read.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TILE = 16;

__global__ void matmul_tiled(const float* a, const float* b, float* c, int m, int k, int n) {
  __shared__ float as[TILE][TILE];
  __shared__ float bs[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty;
  int col = blockIdx.x * TILE + tx;
  float sum = 0.0f;
  for (int t = 0; t < (k + TILE - 1) / TILE; ++t) {
    int ka = t * TILE + tx;
    int kb = t * TILE + ty;
    as[ty][tx] = (row < m && ka < k) ? a[row * k + ka] : 0.0f;
    bs[ty][tx] = (kb < k && col < n) ? b[kb * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += as[ty][i] * bs[i][tx];
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 block(TILE, TILE);
  dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  matmul_tiled<<<grid, block, 0, stream>>>(a, b, c, (int)m, (int)k, (int)n);
}
