// cause: off_by_one
// mistake: the loop ends before the last element.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void init(float* total) { total[0] = 0.0f; }

__global__ void sum_simple(const float* x, float* total, int64_t n) {
  float v = 0.0f;
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n - 1; i += gridDim.x * blockDim.x) v += x[i];
  atomicAdd(total, v);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  init<<<1, 1, 0, stream>>>(total);
  sum_simple<<<32, 128, 0, stream>>>(x, total, n);
}
