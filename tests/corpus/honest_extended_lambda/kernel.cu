// Honest: A kernel template that calls a __device__ lambda, which launch() gives it.
#include <cuda_runtime.h>

#include <cstdint>

template <class Body>
__global__ void for_each(int64_t n, Body body) {
  for (int64_t i = blockIdx.x * int64_t{256} + threadIdx.x; i < n; i += int64_t{256} * gridDim.x) body(i);
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  for_each<<<1024, 256, 0, stream>>>(rows * cols, [=] __device__(int64_t i) { y[i % cols * rows + i / cols] = x[i]; });
}
