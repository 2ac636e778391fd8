// cause: off_by_one
// mistake: the offset of a block includes the block itself, since the scan of the sums is inclusive.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ float warp_scan(float v) {
  const int lane = threadIdx.x & 31;
  for (int d = 1; d < 32; d *= 2) {
    const float up = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += up;
  }
  return v;
}

__global__ void local_scan(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float warp_total[kThreads / 32];
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  float v = warp_scan(i < n ? x[i] : 0.0f);
  if (threadIdx.x % 32 == 31) warp_total[threadIdx.x / 32] = v;
  __syncthreads();
  for (int w = 0; w < threadIdx.x / 32; ++w) v += warp_total[w];
  if (i < n) y[i] = v;
  if (threadIdx.x == kThreads - 1) sums[blockIdx.x] = v;
}

__global__ void scan_of_sums(float* sums, int64_t blocks) {
  float run = 0.0f;
  for (int64_t b = 0; b < blocks; ++b) {
    run += sums[b];
    sums[b] = run;
  }
}

__global__ void add_block_offset(float* y, const float* sums, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < n) y[i] += sums[blockIdx.x];
}

extern "C" size_t workspace_bytes(int64_t n) { return (n + kThreads - 1) / kThreads * sizeof(float); }

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  local_scan<<<(unsigned)blocks, kThreads, 0, stream>>>(x, y, (float*)workspace, n);
  scan_of_sums<<<1, 1, 0, stream>>>((float*)workspace, blocks);
  add_block_offset<<<(unsigned)blocks, kThreads, 0, stream>>>(y, (const float*)workspace, n);
}
