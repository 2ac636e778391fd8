// Native baseline: the sum of a vector, fp32, as a framework does it: a grid-stride loop with float4, one partial sum a
// block, and a second launch of one block.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kMostBlocks = 1024;

/// The sum of `v` over the block, in thread 0.
__device__ float block_sum(float v) {
  __shared__ float partial[kWarps];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x < kWarps ? partial[threadIdx.x] : 0.0f;
  if (threadIdx.x < 32)
    for (int offset = kWarps / 2; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
  return v;
}

/// sums[block] = the block's share of x.
__global__ void partial_sums(const float* __restrict__ x, float* __restrict__ sums, int64_t n) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, vectors = n / 4;
  float sum = 0;
  for (int64_t i = first; i < vectors; i += step) {
    const float4 v = reinterpret_cast<const float4*>(x)[i];
    sum += (v.x + v.y) + (v.z + v.w);
  }
  if (vectors * 4 + first < n) sum += x[vectors * 4 + first];
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

}  // namespace

extern "C" const char* baseline_label() { return "native sum: float4, two launches, fp32"; }

extern "C" size_t workspace_bytes(int64_t /*n*/) { return kMostBlocks * sizeof(float); }

extern "C" void launch(const float* x /*[n]*/, float* total /*[1]*/, int64_t n, void* workspace, cudaStream_t stream) {
  float* sums = static_cast<float*>(workspace);
  const int64_t blocks = std::clamp<int64_t>(n / (4 * kThreads), 1, kMostBlocks);
  partial_sums<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, sums, n);
  partial_sums<<<1, kThreads, 0, stream>>>(sums, total, blocks);
}
