// Live demo: no thread computes the last element. `capstone demo off-by-one` shows how gate one finds it.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void vector_add(const float* x, const float* y, float* z, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n - 1) z[i] = x[i] + y[i];  // should be i < n
}

extern "C" void launch(const float* x, const float* y, float* z, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  vector_add<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, y, z, n);
}
