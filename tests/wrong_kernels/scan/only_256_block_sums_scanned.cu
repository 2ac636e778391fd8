// cause: uninitialised
// line: 39
// mistake: one block scans the sums of at most 256 blocks, and the offsets of all later blocks are never set.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ float block_scan(float v, float* s) {
  s[threadIdx.x] = v;
  __syncthreads();
  for (int d = 1; d < kThreads; d *= 2) {
    float add = threadIdx.x >= d ? s[threadIdx.x - d] : 0.0f;
    __syncthreads();
    s[threadIdx.x] += add;
    __syncthreads();
  }
  return s[threadIdx.x];
}

__global__ void scan_tiles(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float s[kThreads];
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const float v = block_scan(i < n ? x[i] : 0.0f, s);
  if (i < n) y[i] = v;
  if (threadIdx.x == kThreads - 1) sums[blockIdx.x] = v;
}

__global__ void scan_sums(const float* sums, float* offsets, int64_t tiles) {
  __shared__ float s[kThreads];
  const float v = threadIdx.x < tiles ? sums[threadIdx.x] : 0.0f;
  const float inclusive = block_scan(v, s);
  if (threadIdx.x < tiles) offsets[threadIdx.x] = inclusive - v;
}

__global__ void add_offsets(float* y, const float* offsets, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < n) y[i] += offsets[blockIdx.x];
}

extern "C" size_t workspace_bytes(int64_t n) { return 2 * ((n + kThreads - 1) / kThreads) * sizeof(float); }

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  const int64_t tiles = (n + kThreads - 1) / kThreads;
  float* sums = (float*)workspace;
  float* offsets = sums + tiles;
  scan_tiles<<<(unsigned)tiles, kThreads, 0, stream>>>(x, y, sums, n);
  scan_sums<<<1, kThreads, 0, stream>>>(sums, offsets, tiles);
  add_offsets<<<(unsigned)tiles, kThreads, 0, stream>>>(y, offsets, n);
}
