// cause: uninitialised
// line: 32
// mistake: the second kernel reads 1024 partial sums, however many blocks the first kernel had.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kMaxBlocks = 1024;

__device__ float block_sum(float v) {
  __shared__ float s[kThreads];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k >>= 1) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  return s[0];
}

__global__ void first(const float* x, float* partial, int64_t n) {
  float v = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < n; i += (int64_t)gridDim.x * kThreads)
    v += x[i];
  v = block_sum(v);
  if (threadIdx.x == 0) partial[blockIdx.x] = v;
}

__global__ void second(const float* partial, float* total, int count) {
  float v = 0.0f;
  for (int i = threadIdx.x; i < count; i += kThreads) v += partial[i];
  v = block_sum(v);
  if (threadIdx.x == 0) total[0] = v;
}

extern "C" size_t workspace_bytes(int64_t n) { return kMaxBlocks * sizeof(float); }

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  float* partial = (float*)workspace;
  int64_t blocks = (n + kThreads - 1) / kThreads;
  if (blocks > kMaxBlocks) blocks = kMaxBlocks;
  first<<<(unsigned)blocks, kThreads, 0, stream>>>(x, partial, n);
  second<<<1, kThreads, 0, stream>>>(partial, total, kMaxBlocks);
}
