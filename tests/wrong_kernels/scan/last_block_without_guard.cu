// cause: out_of_bounds
// line: 43
// mistake: the last block stores beyond the end of y.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void block_totals(const float* x, float* totals, int64_t n) {
  __shared__ float s[kThreads];
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = s[0];
}

__global__ void exclusive(float* totals, int64_t count) {
  float run = 0.0f;
  for (int64_t b = 0; b < count; ++b) {
    const float v = totals[b];
    totals[b] = run;
    run += v;
  }
}

__global__ void scan_final(const float* x, float* y, const float* totals, int64_t n) {
  __shared__ float s[2][kThreads];
  const int t = threadIdx.x;
  const int64_t i = (int64_t)blockIdx.x * kThreads + t;
  int cur = 0;
  s[0][t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int d = 1; d < kThreads; d *= 2) {
    s[cur ^ 1][t] = s[cur][t] + (t >= d ? s[cur][t - d] : 0.0f);
    cur ^= 1;
    __syncthreads();
  }
  y[i] = s[cur][t] + totals[blockIdx.x];
}

extern "C" size_t workspace_bytes(int64_t n) { return (n + kThreads - 1) / kThreads * sizeof(float); }

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  float* totals = (float*)workspace;
  block_totals<<<(unsigned)blocks, kThreads, 0, stream>>>(x, totals, n);
  exclusive<<<1, 1, 0, stream>>>(totals, blocks);
  scan_final<<<(unsigned)blocks, kThreads, 0, stream>>>(x, y, totals, n);
}
