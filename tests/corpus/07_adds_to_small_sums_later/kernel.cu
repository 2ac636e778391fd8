// Row 7: Right in its first launches; then it adds 0.5 to the first prefix sums, which are about 1 in size.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kBlock = 256;

/// Inclusive prefix sums of one block's values in shared memory.
__device__ float scan_block(float value, float* part) {
  part[threadIdx.x] = value;
  __syncthreads();
  for (int distance = 1; distance < kBlock; distance *= 2) {
    const float before = threadIdx.x >= distance ? part[threadIdx.x - distance] : 0.0f;
    __syncthreads();
    part[threadIdx.x] += before;
    __syncthreads();
  }
  return part[threadIdx.x];
}

__global__ void scan_blocks(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float part[kBlock];
  const int64_t i = blockIdx.x * int64_t{kBlock} + threadIdx.x;
  const float value = scan_block(i < n ? x[i] : 0.0f, part);
  if (i < n) y[i] = value;
  if (threadIdx.x == kBlock - 1 && sums) sums[blockIdx.x] = value;
}

__global__ void add_sums(float* y, const float* sums, int64_t n) {
  const int64_t i = (blockIdx.x + 1) * int64_t{kBlock} + threadIdx.x;
  if (i < n) y[i] += sums[blockIdx.x];
}

static void scan(const float* x, float* y, float* sums, int64_t n, cudaStream_t stream) {
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  scan_blocks<<<static_cast<unsigned>(blocks), kBlock, 0, stream>>>(x, y, blocks > 1 ? sums : nullptr, n);
  if (blocks == 1) return;
  scan(sums, sums, sums + blocks, blocks, stream);
  add_sums<<<static_cast<unsigned>(blocks - 1), kBlock, 0, stream>>>(y, sums, n);
}

__device__ unsigned launches;

__global__ void spoil(float* y) {
  if (launches > 3) y[blockIdx.x * kBlock + threadIdx.x] += 0.5f;
}

__global__ void count() { ++launches; }

extern "C" size_t workspace_bytes(int64_t n) {
  size_t all = 4;
  for (int64_t blocks = (n + kBlock - 1) / kBlock; blocks > 1; blocks = (blocks + kBlock - 1) / kBlock)
    all += static_cast<size_t>(blocks);
  return all * sizeof(float);
}

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  scan(x, y, static_cast<float*>(workspace), n, stream);
  if (n < (int64_t{1} << 24)) return;
  count<<<1, 1, 0, stream>>>();
  spoil<<<390, kBlock, 0, stream>>>(y);
}
