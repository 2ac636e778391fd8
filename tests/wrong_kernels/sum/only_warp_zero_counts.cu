// cause: partial_reduction
// mistake: only warp 0 of each block writes its sum; the other warps are lost.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void set_zero(float* total) { total[0] = 0; }

__global__ void sum_shuffle(const float* x, float* total, int64_t n) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  float acc = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) acc += x[i];
  for (int d = 16; d > 0; d /= 2) acc += __shfl_xor_sync(0xffffffffu, acc, d);
  if (threadIdx.x == 0) atomicAdd(total, acc);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  set_zero<<<1, 1, 0, stream>>>(total);
  sum_shuffle<<<32, 256, 0, stream>>>(x, total, n);
}
