// Rung 2: up the tree and down again, with 2 n additions instead of n log n.
//
// Changed     a block scans 1024 elements. On the way up, sums of 2, 4, 8, … elements are left at their ends;
//             on the way down each of them is passed on. A float of padding after every 32 keeps strides of
//             powers of two out of one bank.
// Why         rung 1 does eight additions per element; here it is two, and a block covers four times as many
//             elements, so there are four times fewer sums. The price: twice the steps, and most threads idle
//             near the root.
// Prediction  the traffic of rung 1 remains (4 n floats), the work falls: 1.3x to 2x rung 1.
//
// Shapes      x, y [n]; n up to 2^31 * 1024.
// Launch      <<<ceil(n / 1024), 256>>> for each level, down and up again: at most five launches.
// Resources   about 30 registers; 4.1 KB of shared memory; ceil(n / 1024) floats of workspace for each level.
// Cost        2 n FLOPs and a little, n would do; 16 n bytes.
// Divides     no divisibility is required: elements past the end are zero.
// Source      G. Blelloch, "Prefix Sums and Their Applications", 1990; the padding: M. Harris et al., GPU
//             Gems 3, 2007.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256, kEach = 4, kShare = kThreads * kEach;  // elements a block

/// The place of element i in shared memory.
__device__ int at(int i) { return i + i / 32; }

/// Scans 1024 elements per block; sums[block], where wanted, is the last of them. y may be x.
__global__ void scan_blocks(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float value[kShare + kShare / 32];
  const int thread = threadIdx.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kShare;
  for (int i = thread; i < kShare; i += kThreads) value[at(i)] = first + i < n ? x[first + i] : 0.0f;

  // Up: the element at the end of each 2 * stride elements becomes their sum.
  for (int stride = 1; stride < kShare; stride *= 2) {
    __syncthreads();
    for (int i = (thread + 1) * 2 * stride - 1; i < kShare; i += kThreads * 2 * stride) value[at(i)] += value[at(i - stride)];
  }
  // Down: what ends at i is complete; pass it on to the middle of the next 2 * stride elements.
  for (int stride = kShare / 4; stride > 0; stride /= 2) {
    __syncthreads();
    for (int i = (thread + 1) * 2 * stride - 1; i + stride < kShare; i += kThreads * 2 * stride)
      value[at(i + stride)] += value[at(i)];
  }
  __syncthreads();
  for (int i = thread; i < kShare; i += kThreads)
    if (first + i < n) y[first + i] = value[at(i)];
  if (sums != nullptr && thread == 0) sums[blockIdx.x] = value[at(kShare - 1)];
}

/// Adds to each block the scanned sums of all blocks before it.
__global__ void add_sums(float* __restrict__ y, const float* __restrict__ sums, int64_t n) {
  const int64_t first = static_cast<int64_t>(blockIdx.x + 1) * kShare;  // block 0 has nothing before it
  const float before = sums[blockIdx.x];
  for (int i = threadIdx.x; i < kShare; i += kThreads)
    if (first + i < n) y[first + i] += before;
}

int64_t blocks_for(int64_t n) { return (n + kShare - 1) / kShare; }

extern "C" size_t workspace_bytes(int64_t n) {
  size_t floats = 0;
  for (int64_t level = n; level > kShare; level = blocks_for(level)) floats += static_cast<size_t>(blocks_for(level));
  return floats * sizeof(float);
}

void scan(const float* x, float* y, int64_t n, float* workspace, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(blocks_for(n));
  if (blocks == 1) {
    scan_blocks<<<1, kThreads, 0, stream>>>(x, y, nullptr, n);
    return;
  }
  scan_blocks<<<blocks, kThreads, 0, stream>>>(x, y, workspace, n);
  scan(workspace, workspace, blocks, workspace + blocks, stream);  // the sums, in place
  add_sums<<<blocks - 1, kThreads, 0, stream>>>(y, workspace, n);
}

extern "C" void launch(const float* x /*[n]*/, float* y /*[n]*/, int64_t n, void* workspace, cudaStream_t stream) {
  scan(x, y, n, static_cast<float*>(workspace), stream);
}
