// cause: precision
// mistake: the tiles hold the operands as half, which loses thirteen bits of each.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TILE = 16;
typedef __half elem;

__global__ void gemm_small_tiles(const float* a, const float* b, float* c, int m, int k, int n) {
  __shared__ elem as[TILE][TILE];
  __shared__ elem bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int p = 0; p < k; p += TILE) {
    float av = 0.0f, bv = 0.0f;
    if (row < m && p + (int)threadIdx.x < k) av = a[row * k + p + threadIdx.x];
    if (col < n && p + (int)threadIdx.y < k) bv = b[(p + threadIdx.y) * n + col];
    as[threadIdx.y][threadIdx.x] = (elem)av;
    bs[threadIdx.y][threadIdx.x] = (elem)bv;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += (float)as[threadIdx.y][i] * (float)bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  gemm_small_tiles<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16), 0, stream>>>(a, b, c, m, k, n);
}
