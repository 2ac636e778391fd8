// cause: out_of_bounds
// line: 13
// mistake: the kernel has no guard, so the threads of the last blocks read and write beyond the matrices.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void matmul(const float* a, const float* b, float* c, int m, int k, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) {
    sum += a[row * k + i] * b[i * n + col];
  }
  c[row * n + col] = sum;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 block(16, 16);
  dim3 grid((n + 15) / 16, (m + 15) / 16);
  matmul<<<grid, block, 0, stream>>>(a, b, c, (int)m, (int)k, (int)n);
}
