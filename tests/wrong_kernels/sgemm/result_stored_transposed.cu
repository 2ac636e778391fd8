// cause: transposed
// mistake: the result is stored as its transpose, c[col * m + row].
#include <cuda_runtime.h>

#include <cstdint>

__global__ void matmul_4cols(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  // Each thread computes four neighbouring columns of one row.
  const int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
  const int64_t col0 = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (row >= m) return;
  float acc[4] = {0.f, 0.f, 0.f, 0.f};
  for (int64_t p = 0; p < k; ++p) {
    const float av = a[row * k + p];
    for (int j = 0; j < 4; ++j) {
      if (col0 + j < n) acc[j] += av * b[p * n + col0 + j];
    }
  }
  for (int j = 0; j < 4; ++j) {
    if (col0 + j < n) c[(col0 + j) * m + row] = acc[j];
  }
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 block(16, 16);
  dim3 grid((n + 63) / 64, (m + 15) / 16);
  matmul_4cols<<<grid, block, 0, stream>>>(a, b, c, m, k, n);
}
