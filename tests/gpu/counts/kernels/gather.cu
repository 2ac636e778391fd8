// Addresses that come from memory. The indices are computed here, so that they do not depend on the inputs.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ int thread_of_grid() { return blockIdx.x * kThreads + threadIdx.x; }

// A bijection of 0 … 65535: multiply by an odd factor, then mix the high bits into the low bits.
__global__ void make_index(int* index) {
  const unsigned i = thread_of_grid(), scattered = i * 40503u & 0xFFFFu;
  index[i] = static_cast<int>(scattered ^ scattered >> 7);
}
__global__ void gather(const float* x, const int* index, float* y) {
  const int i = thread_of_grid();
  y[i] = x[index[i]];
}
__global__ void scatter(const float* x, const int* index, float* y) {
  const int i = thread_of_grid();
  y[index[i]] = x[i];
}
// Groups of four lanes stay together.
__global__ void gather_groups(const float* x, const int* index, float* y) {
  const int i = thread_of_grid();
  y[i] = x[(index[i / 4] & ~3) + i % 4];
}

extern "C" size_t workspace_bytes(int64_t n) { return sizeof(int) * static_cast<size_t>(n); }
extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  const int blocks = static_cast<int>(n) / kThreads;
  int* index = static_cast<int*>(workspace);
  make_index<<<blocks, kThreads, 0, stream>>>(index);
  gather<<<blocks, kThreads, 0, stream>>>(x, index, y);
  scatter<<<blocks, kThreads, 0, stream>>>(x, index, y);
  gather_groups<<<blocks, kThreads, 0, stream>>>(x, index, y);
}
