// cause: transposed
// mistake: a is read as if it were stored column by column: a[p * m + row] instead of a[row * k + p].
#include <cuda_runtime.h>

#include <cstdint>

__global__ void sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                      int64_t m, int64_t k, int64_t n) {
  const int64_t col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float dot = 0.0f;
  for (int64_t p = 0; p < k; ++p) {
    dot += a[p * m + row] * b[p * n + col];
  }
  c[row * n + col] = dot;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 block(32, 8);
  dim3 grid((n + 31) / 32, (m + 7) / 8);
  sgemm<<<grid, block, 0, stream>>>(a, b, c, m, k, n);
}
