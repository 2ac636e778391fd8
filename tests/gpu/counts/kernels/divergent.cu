// Lanes of one warp that take different paths.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ int thread_of_grid() { return blockIdx.x * kThreads + threadIdx.x; }

// 16 lanes of 32.
__global__ void odd_lanes(const float* x, float* y) {
  const int i = thread_of_grid();
  if (i % 2) y[i] = x[i];
}
// The last block ends inside a warp.
__global__ void ragged_end(const float* x, float* y, int n) {
  const int i = thread_of_grid();
  if (i >= n) return;
  y[i] = x[i];
}
// Each lane has a loop of a different length, 0 to 7: 28 iterations of 8 lanes.
__global__ void ragged_loops(const float* x, float* y) {
  const int i = thread_of_grid();
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < i % 8; ++k) sum += x[k * kThreads + i];
  y[i] = sum;
}
// Half of the warps do nothing: no divergence.
__global__ void every_second_warp(const float* x, float* y) {
  const int i = thread_of_grid();
  if (i / 32 % 2) y[i] = x[i];
}
// The sum of a block: shuffles, one lane per warp stores, one warp reads, one lane of the block stores.
__global__ void block_sum(const float* x, float* y) {
  __shared__ float partial[kThreads / 32];
  const int t = threadIdx.x;
  float v = x[thread_of_grid()];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xFFFFFFFFu, v, offset);
  if (t % 32 == 0) partial[t / 32] = v;
  __syncthreads();
  if (t < kThreads / 32) {
    v = partial[t];
    for (int offset = kThreads / 64; offset > 0; offset /= 2) v += __shfl_down_sync((1u << kThreads / 32) - 1, v, offset);
    if (t == 0) y[blockIdx.x] = v;
  }
}
// Three neighbours on each side from shared memory; six lanes of a block load the halo.
constexpr int kRadius = 3;
__global__ void stencil(const float* x, float* y) {
  __shared__ float s[kThreads + 2 * kRadius];
  const int t = threadIdx.x, i = thread_of_grid() + kRadius;
  s[t + kRadius] = x[i];
  if (t < kRadius) {
    s[t] = x[i - kRadius];
    s[t + kThreads + kRadius] = x[i + kThreads];
  }
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k <= 2 * kRadius; ++k) sum += s[t + k];
  y[i] = sum;
}

extern "C" void launch(const float* x, float* y, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const int blocks = static_cast<int>(n) / kThreads;
  odd_lanes<<<blocks, kThreads, 0, stream>>>(x, y);
  ragged_end<<<blocks / 8, kThreads, 0, stream>>>(x, y, static_cast<int>(n) / 8 - 45);
  ragged_loops<<<blocks / 8, kThreads, 0, stream>>>(x, y);
  every_second_warp<<<blocks, kThreads, 0, stream>>>(x, y);
  block_sum<<<blocks, kThreads, 0, stream>>>(x, y);
  stencil<<<blocks - 1, kThreads, 0, stream>>>(x, y);
}
