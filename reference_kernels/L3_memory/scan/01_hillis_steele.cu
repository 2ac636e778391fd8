// Rung 1: log n steps over everything, block by block.
//
// Changed     nothing yet. A block scans 256 elements in shared memory: in step s every thread adds what lies
//             2^s before it. The sums of the blocks are scanned in the same way, level by level, and added to
//             all later blocks.
// Why         the beginning of the ladder: each step is parallel, and eight steps replace 255 additions in a
//             row. Two buffers, because a thread reads what its neighbour writes.
// Prediction  y is written, read and written again: 4 n floats where 2 n would do, and eight barriers for 256
//             elements: 15 to 25 % of a copy.
//
// Shapes      x, y [n]; n up to 2^31 * 256.
// Launch      <<<ceil(n / 256), 256>>> for each level, down and up again: at most seven launches.
// Resources   about 16 registers; 2 KB of shared memory; ceil(n / 256) floats of workspace for each level.
// Cost        8 n FLOPs and more, n would do; 16 n bytes.
// Divides     no divisibility is required: threads without an element add zero.
// Source      W. D. Hillis and G. L. Steele, "Data Parallel Algorithms", CACM 1986.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256;

/// Scans 256 elements per block; sums[block], where wanted, is the last of them. y may be x.
__global__ void scan_blocks(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float buffer[2][kThreads];
  const int thread = threadIdx.x;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + thread;
  buffer[0][thread] = i < n ? x[i] : 0.0f;
  int present = 0;
  for (int stride = 1; stride < kThreads; stride *= 2, present ^= 1) {
    __syncthreads();
    const float own = buffer[present][thread];
    buffer[present ^ 1][thread] = thread >= stride ? own + buffer[present][thread - stride] : own;
  }
  const float result = buffer[present][thread];  // this thread wrote it itself
  if (i < n) y[i] = result;
  if (sums != nullptr && thread == kThreads - 1) sums[blockIdx.x] = result;
}

/// Adds to each block the scanned sums of all blocks before it.
__global__ void add_sums(float* __restrict__ y, const float* __restrict__ sums, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x + 1) * kThreads + threadIdx.x;  // block 0 has nothing before it
  if (i < n) y[i] += sums[blockIdx.x];
}

int64_t blocks_for(int64_t n) { return (n + kThreads - 1) / kThreads; }

extern "C" size_t workspace_bytes(int64_t n) {
  size_t floats = 0;
  for (int64_t level = n; level > kThreads; level = blocks_for(level)) floats += static_cast<size_t>(blocks_for(level));
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
