// Rung 1: a tree in shared memory, again and again.
//
// Changed     nothing yet. A block of 256 threads takes 256 elements into shared memory and halves them eight
//             times; its sum is one element of the next launch's input. After at most four launches one value
//             is left.
// Why         the beginning of the ladder. The threads that still work are neighbours (stride 128, 64, …), so
//             that whole warps go idle instead of half of every warp.
// Prediction  one element per thread, nine barriers for 256 elements: barriers and idle threads, not bytes;
//             15 to 30 % of the bandwidth.
//
// Shapes      x [n], total [1]; n up to 2^31 * 256.
// Launch      <<<ceil(n / 256), 256>>>, then the same over the sums, until one block is enough.
// Resources   about 10 registers; 1 KB of shared memory; ceil(n / 256) floats of workspace and a little.
// Cost        n FLOPs; 4 n bytes, and 1/64 of that again for the sums.
// Divides     no divisibility is required: threads without an element add zero.
// Source      M. Harris, "Optimizing Parallel Reduction in CUDA", NVIDIA, 2007 (its third version).
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

constexpr int kThreads = 256;

/// sums[block] = the sum of the block's 256 elements.
__global__ void sum_blocks(const float* __restrict__ x, float* __restrict__ sums, int64_t n) {
  __shared__ float value[kThreads];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  value[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) value[threadIdx.x] += value[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = value[0];
}

int64_t blocks_for(int64_t n) { return (n + kThreads - 1) / kThreads; }

extern "C" size_t workspace_bytes(int64_t n) {
  return static_cast<size_t>(blocks_for(n) + blocks_for(blocks_for(n))) * sizeof(float);
}

extern "C" void launch(const float* x /*[n]*/, float* total /*[1]*/, int64_t n, void* workspace, cudaStream_t stream) {
  float* here = static_cast<float*>(workspace);
  float* there = here + blocks_for(n);  // the launches write to the two in turn
  while (n > kThreads) {
    sum_blocks<<<static_cast<unsigned>(blocks_for(n)), kThreads, 0, stream>>>(x, here, n);
    n = blocks_for(n);
    x = here;
    std::swap(here, there);
  }
  sum_blocks<<<1, kThreads, 0, stream>>>(x, total, n);
}
