// cause: race
// line: 16
// mistake: the lanes of a warp add their partial sums to one shared variable without an atomic.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void sum_blocks(const float* x, float* partial, int64_t n) {
  __shared__ float block_total;
  if (threadIdx.x == 0) block_total = 0.0f;
  __syncthreads();
  float mine = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += (int64_t)gridDim.x * blockDim.x)
    mine += x[i];
  block_total += mine;
  __syncthreads();
  if (threadIdx.x == 0) partial[blockIdx.x] = block_total;
}

__global__ void sum_partials(const float* partial, float* total, int count) {
  float s = 0.0f;
  for (int i = 0; i < count; ++i) s += partial[i];
  total[0] = s;
}

extern "C" size_t workspace_bytes(int64_t n) { return 64 * sizeof(float); }

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  float* partial = static_cast<float*>(workspace);
  sum_blocks<<<64, 128, 0, stream>>>(x, partial, n);
  sum_partials<<<1, 1, 0, stream>>>(partial, total, 64);
}
