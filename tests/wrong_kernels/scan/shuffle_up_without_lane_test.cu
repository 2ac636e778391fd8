// cause: logic
// mistake: __shfl_up_sync returns the own value below the offset, and it is added without testing the lane.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 128;

__global__ void warp_scans(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float totals[kThreads / 32];
  const int warp = threadIdx.x / 32;
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
  for (int d = 1; d < 32; d <<= 1) {
    const float up = __shfl_up_sync(0xffffffffu, v, d);
    v += up;
  }
  if (threadIdx.x % 32 == 31) totals[warp] = v;
  __syncthreads();
  for (int w = 0; w < warp; ++w) v += totals[w];
  if (i < n) y[i] = v;
  if (threadIdx.x == kThreads - 1) sums[blockIdx.x] = v;
}

__global__ void exclusive_sums(float* sums, int64_t blocks) {
  float run = 0.0f;
  for (int64_t b = 0; b < blocks; ++b) {
    const float s = sums[b];
    sums[b] = run;
    run += s;
  }
}

__global__ void add_sums(float* y, const float* sums, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < n) y[i] += sums[blockIdx.x];
}

extern "C" size_t workspace_bytes(int64_t n) { return (n + kThreads - 1) / kThreads * sizeof(float); }

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  warp_scans<<<(unsigned)blocks, kThreads, 0, stream>>>(x, y, (float*)workspace, n);
  exclusive_sums<<<1, 1, 0, stream>>>((float*)workspace, blocks);
  add_sums<<<(unsigned)blocks, kThreads, 0, stream>>>(y, (float*)workspace, n);
}
