// cause: logic
// mistake: the vector is scanned from its end: y[i] is the sum of x[i] and everything after it.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void scan_carry(const float* x, float* y, int64_t n) {
  __shared__ float s[kThreads];
  const int t = threadIdx.x;
  float carry = 0.0f;
  for (int64_t base = 0; base < n; base += kThreads) {
    const int64_t i = base + t;
    const int64_t j = n - 1 - i;
    s[t] = i < n ? x[j] : 0.0f;
    __syncthreads();
    for (int d = 1; d < kThreads; d *= 2) {
      const float add = t >= d ? s[t - d] : 0.0f;
      __syncthreads();
      s[t] += add;
      __syncthreads();
    }
    if (i < n) y[j] = carry + s[t];
    carry += s[kThreads - 1];
    __syncthreads();
  }
}

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  scan_carry<<<1, kThreads, 0, stream>>>(x, y, n);
}
