// cause: partial_reduction
// mistake: each block is scanned by itself, and the sums of the blocks before it are not added.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kBlock = 256;

__global__ void scan_blocks(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float s[kBlock];
  const int t = threadIdx.x;
  const int64_t i = (int64_t)blockIdx.x * kBlock + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int d = 1; d < kBlock; d *= 2) {
    float add = t >= d ? s[t - d] : 0.0f;
    __syncthreads();
    s[t] += add;
    __syncthreads();
  }
  if (i < n) y[i] = s[t];
  if (t == kBlock - 1) sums[blockIdx.x] = s[t];
}

__global__ void scan_sums(float* sums, int64_t blocks) {
  float run = 0.0f;
  for (int64_t b = 0; b < blocks; ++b) {
    const float v = sums[b];
    sums[b] = run;
    run += v;
  }
}

__global__ void add_offsets(float* y, const float* sums, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * kBlock + threadIdx.x;
  if (i < n) y[i] += sums[blockIdx.x];
}

extern "C" size_t workspace_bytes(int64_t n) { return (n + kBlock - 1) / kBlock * sizeof(float); }

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  float* sums = static_cast<float*>(workspace);
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  scan_blocks<<<(unsigned)blocks, kBlock, 0, stream>>>(x, y, sums, n);
  scan_sums<<<1, 1, 0, stream>>>(sums, blocks);
}
