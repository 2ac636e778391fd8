// cause: launch
// mistake: the grid has its x extent from m and its y extent from n, but the kernel takes columns from x.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void sgemm_grid(const float* a, const float* b, float* c, int m, int k, int n) {
  int col = blockIdx.x * 16 + threadIdx.x;
  int row = blockIdx.y * 16 + threadIdx.y;
  if (row < m && col < n) {
    float sum = 0.0f;
    for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
  }
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 block(16, 16);
  dim3 grid((m + 15) / 16, (n + 15) / 16);
  sgemm_grid<<<grid, block, 0, stream>>>(a, b, c, (int)m, (int)k, (int)n);
}
