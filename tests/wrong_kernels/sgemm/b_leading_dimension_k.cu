// cause: stride
// line: 14
// mistake: b is indexed with k as its leading dimension; a row of b has n elements.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void sgemm_naive(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  int64_t idx = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= m * n) return;
  int64_t row = idx / n;
  int64_t col = idx % n;
  float acc = 0.0f;
  for (int64_t p = 0; p < k; ++p) acc += a[row * k + p] * b[p * k + col];
  c[idx] = acc;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  const int threads = 256;
  sgemm_naive<<<(unsigned)((m * n + threads - 1) / threads), threads, 0, stream>>>(a, b, c, m, k, n);
}
