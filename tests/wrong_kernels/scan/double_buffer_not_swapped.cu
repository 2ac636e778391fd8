// cause: stale_tile
// mistake: the buffers of the scan are not swapped, so each step reads the input again.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int B = 512;

__global__ void scan_block(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float a[B], b[B];
  float* src = a;
  float* dst = b;
  const int t = threadIdx.x;
  const int64_t i = (int64_t)blockIdx.x * B + t;
  src[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int d = 1; d < B; d <<= 1) {
    dst[t] = t >= d ? src[t] + src[t - d] : src[t];
    __syncthreads();
  }
  const float v = dst[t];
  if (i < n) y[i] = v;
  if (t == B - 1) sums[blockIdx.x] = v;
}

__global__ void add_previous(float* y, const float* sums, int64_t n) {
  float offset = 0.0f;
  for (unsigned b = 0; b < blockIdx.x; ++b) offset += sums[b];
  const int64_t i = (int64_t)blockIdx.x * B + threadIdx.x;
  if (i < n) y[i] += offset;
}

extern "C" size_t workspace_bytes(int64_t n) { return (n + B - 1) / B * sizeof(float); }

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  const unsigned blocks = (unsigned)((n + B - 1) / B);
  scan_block<<<blocks, B, 0, stream>>>(x, y, (float*)workspace, n);
  add_previous<<<blocks, B, 0, stream>>>(y, (const float*)workspace, n);
}
