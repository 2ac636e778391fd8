// cause: precision
// mistake: the carry between the pieces is stored as half.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void scan_pieces(const float* x, float* y, int64_t n) {
  __shared__ float s[kThreads];
  __shared__ __half carry;
  const int t = threadIdx.x;
  if (t == 0) carry = 0.0f;
  for (int64_t base = 0; base < n; base += kThreads) {
    s[t] = base + t < n ? x[base + t] : 0.0f;
    __syncthreads();
    for (int d = 1; d < kThreads; d *= 2) {
      const float add = t >= d ? s[t - d] : 0.0f;
      __syncthreads();
      s[t] += add;
      __syncthreads();
    }
    const float v = (float)carry + s[t];
    if (base + t < n) y[base + t] = v;
    __syncthreads();
    if (t == kThreads - 1) carry = v;
  }
}

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  scan_pieces<<<1, kThreads, 0, stream>>>(x, y, n);
}
