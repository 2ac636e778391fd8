// cause: deadlock
// line: 36
// mistake: block 0 never publishes its sum, and the block after it waits for ever.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void reset(int* flag, int64_t blocks) {
  const int64_t b = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (b < blocks) flag[b] = 0;
}

// Chained scan: every block waits for the running sum of the block before it.
__global__ void scan_chained(const float* x, float* y, int* flag, volatile float* prefix, int* ticket,
                             int64_t n) {
  __shared__ float s[kThreads];
  __shared__ float before;
  __shared__ int block;
  const int t = threadIdx.x;
  if (t == 0) block = atomicAdd(ticket, 1);
  __syncthreads();
  const int64_t i = (int64_t)block * kThreads + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int d = 1; d < kThreads; d *= 2) {
    const float add = t >= d ? s[t - d] : 0.0f;
    __syncthreads();
    s[t] += add;
    __syncthreads();
  }
  if (t == 0) {
    before = 0.0f;
    if (block > 0) {
      while (atomicAdd(&flag[block - 1], 0) == 0) {
      }
      __threadfence();
      before = prefix[block - 1];
      prefix[block] = before + s[kThreads - 1];
      __threadfence();
      atomicExch(&flag[block], 1);
    }
  }
  __syncthreads();
  if (i < n) y[i] = before + s[t];
}

extern "C" size_t workspace_bytes(int64_t n) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  return (blocks + 1) * sizeof(int) + blocks * sizeof(float);
}

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  int* flag = static_cast<int*>(workspace);
  int* ticket = flag + blocks;
  float* prefix = reinterpret_cast<float*>(ticket + 1);
  reset<<<(unsigned)(blocks / kThreads + 1), kThreads, 0, stream>>>(flag, blocks + 1);
  scan_chained<<<(unsigned)blocks, kThreads, 0, stream>>>(x, y, flag, prefix, ticket, n);
}
