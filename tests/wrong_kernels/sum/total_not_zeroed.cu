// cause: uninitialised
// line: 14
// mistake: total[0] is never set to zero before the blocks add to it.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void sum_atomic(const float* x, float* total, int64_t n) {
  float v = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += (int64_t)gridDim.x * blockDim.x)
    v += x[i];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) atomicAdd(total, v);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  sum_atomic<<<64, 256, 0, stream>>>(x, total, n);
}
