// cause: constant
// mistake: all 32 lanes add the sum of the warp to the total, which makes it 32 times too large.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void init(float* total) { total[0] = 0.0f; }

__global__ void sum_warps(const float* x, float* total, int64_t n) {
  float v = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += (int64_t)gridDim.x * blockDim.x)
    v += x[i];
  for (int mask = 16; mask > 0; mask >>= 1) v += __shfl_xor_sync(0xffffffffu, v, mask);
  atomicAdd(total, v);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  init<<<1, 1, 0, stream>>>(total);
  sum_warps<<<16, 128, 0, stream>>>(x, total, n);
}
