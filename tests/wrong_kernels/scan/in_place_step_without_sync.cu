// cause: race
// line: 17
// mistake: a step of the scan reads its neighbour and writes its own element without a barrier in between.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kBlock = 128;

__global__ void scan_blocks(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float s[kBlock];
  const int t = threadIdx.x;
  const int64_t i = (int64_t)blockIdx.x * kBlock + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int d = 1; d < kBlock; d <<= 1) {
    if (t >= d) s[t] += s[t - d];
    __syncthreads();
  }
  if (i < n) y[i] = s[t];
  if (t == kBlock - 1) sums[blockIdx.x] = s[t];
}

__global__ void prefix(float* sums, int blocks) {
  float run = 0.0f;
  for (int b = 0; b < blocks; ++b) {
    float v = sums[b];
    sums[b] = run;
    run += v;
  }
}

__global__ void add(float* y, const float* sums, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * kBlock + threadIdx.x;
  if (i < n) y[i] += sums[blockIdx.x];
}

extern "C" size_t workspace_bytes(int64_t n) { return (n + kBlock - 1) / kBlock * sizeof(float); }

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  float* sums = (float*)workspace;
  const int blocks = (int)((n + kBlock - 1) / kBlock);
  scan_blocks<<<blocks, kBlock, 0, stream>>>(x, y, sums, n);
  prefix<<<1, 1, 0, stream>>>(sums, blocks);
  add<<<blocks, kBlock, 0, stream>>>(y, sums, n);
}
