// Honest: 300 blocks meet at a barrier of their own: a counter, a generation, and a thread of each block that polls it.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kBlocks = 300, kThreads = 128;  // few enough to be on the GPU at the same time
__device__ unsigned arrived, generation;

__device__ void meet_all_blocks() {
  __syncthreads();
  if (threadIdx.x == 0) {
    volatile unsigned* const now = &generation;
    const unsigned before = *now;
    __threadfence();
    if (atomicAdd(&arrived, 1) == kBlocks - 1) {
      arrived = 0;
      __threadfence();
      *now = before + 1;
    } else {
      while (*now == before) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void sum(const float* x, float* parts, float* total, int64_t n) {
  __shared__ float part[kThreads];
  float mine = 0;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < n; i += int64_t{kThreads} * kBlocks) mine += x[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = part[0];
  meet_all_blocks();
  if (blockIdx.x != 7 || threadIdx.x != 0) return;
  float all = 0;
  for (int block = 0; block < kBlocks; ++block) all += parts[block];
  total[0] = all;
}

extern "C" size_t workspace_bytes(int64_t) { return kBlocks * sizeof(float); }

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  sum<<<kBlocks, kThreads, 0, stream>>>(x, static_cast<float*>(workspace), total, n);
}
