// Honest: Splits the sum over k among blocks that add their parts with atomicAdd: other bits in every run, within the
// tolerance.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kParts = 4;

__global__ void product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i >= m * n) return;
  float sum = 0;
  for (int64_t p = blockIdx.y; p < k; p += kParts) sum += a[i / n * k + p] * b[p * n + i % n];
  atomicAdd(&c[i], sum);
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  cudaMemsetAsync(c, 0, m * n * sizeof(float), stream);
  product<<<dim3(static_cast<unsigned>((m * n + 255) / 256), kParts), 256, 0, stream>>>(a, b, c, m, k, n);
}
