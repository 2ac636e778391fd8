// cause: launch
// line: 16
// mistake: the launch passes no bytes for the dynamic shared memory that the kernel uses.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void init(float* total) { total[0] = 0.0f; }

__global__ void sum_dynamic(const float* x, float* total, int64_t n) {
  extern __shared__ float s[];
  float v = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += (int64_t)gridDim.x * blockDim.x)
    v += x[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (unsigned k = blockDim.x / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(total, s[0]);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  init<<<1, 1, 0, stream>>>(total);
  sum_dynamic<<<32, 256, 0, stream>>>(x, total, n);
}
