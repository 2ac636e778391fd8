// cause: logic
// mistake: the stride of the loop is the block size, not the grid size: elements are added several times.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void init(float* total) { total[0] = 0.0f; }

__global__ void sum_grid_stride(const float* x, float* total, int64_t n) {
  __shared__ float part[4];
  float v = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x) v += x[i];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(total, part[0] + part[1] + part[2] + part[3]);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  init<<<1, 1, 0, stream>>>(total);
  sum_grid_stride<<<16, 128, 0, stream>>>(x, total, n);
}
