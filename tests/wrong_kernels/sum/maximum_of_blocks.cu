// cause: logic
// mistake: the second kernel takes the maximum of the blocks' sums instead of adding them.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kBlocks = 128, kThreads = 128;

__global__ void block_sums(const float* x, float* part, int64_t n) {
  __shared__ float s[kThreads];
  float v = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) v += x[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k >>= 1) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) part[blockIdx.x] = s[0];
}

__global__ void combine(const float* part, float* total) {
  __shared__ float s[kBlocks];
  s[threadIdx.x] = part[threadIdx.x];
  __syncthreads();
  for (int k = kBlocks / 2; k > 0; k >>= 1) {
    if (threadIdx.x < k) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + k]);
    __syncthreads();
  }
  if (threadIdx.x == 0) total[0] = s[0];
}

extern "C" size_t workspace_bytes(int64_t n) { return kBlocks * sizeof(float); }

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  block_sums<<<kBlocks, kThreads, 0, stream>>>(x, (float*)workspace, n);
  combine<<<1, kBlocks, 0, stream>>>((float*)workspace, total);
}
