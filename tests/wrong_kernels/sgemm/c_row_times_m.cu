// cause: stride
// line: 24
// mistake: the result is stored with m as leading dimension instead of n.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TILE = 16;

__global__ void matmul_tiled(const float* a, const float* b, float* c, int m, int k, int n) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  const int row = blockIdx.x * TILE + threadIdx.y;
  const int col = blockIdx.y * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < k; k0 += TILE) {
    as[threadIdx.y][threadIdx.x] =
        row < m && k0 + threadIdx.x < k ? a[(size_t)row * k + k0 + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] =
        col < n && k0 + threadIdx.y < k ? b[(size_t)(k0 + threadIdx.y) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum = fmaf(as[threadIdx.y][i], bs[i][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < m && col < n) c[(size_t)row * m + col] = sum;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 grid((unsigned)((m + TILE - 1) / TILE), (unsigned)((n + TILE - 1) / TILE));
  matmul_tiled<<<grid, dim3(TILE, TILE), 0, stream>>>(a, b, c, (int)m, (int)k, (int)n);
}
