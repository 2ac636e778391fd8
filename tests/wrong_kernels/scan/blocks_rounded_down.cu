// cause: unwritten
// mistake: the number of blocks is n / 1024 rounded down, and the rest of y is not written.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kBlock = 256, kItems = 4, kTile = kBlock * kItems;

__global__ void tile_scan(const float* x, float* y, float* sums, int64_t n) {
  __shared__ float s[kBlock];
  const int t = threadIdx.x;
  const int64_t first = (int64_t)blockIdx.x * kTile + t * kItems;
  float v[kItems];
  float run = 0.0f;
  for (int k = 0; k < kItems; ++k) {
    run += first + k < n ? x[first + k] : 0.0f;
    v[k] = run;
  }
  s[t] = run;
  __syncthreads();
  for (int d = 1; d < kBlock; d *= 2) {
    const float add = t >= d ? s[t - d] : 0.0f;
    __syncthreads();
    s[t] += add;
    __syncthreads();
  }
  const float before = t > 0 ? s[t - 1] : 0.0f;
  for (int k = 0; k < kItems; ++k)
    if (first + k < n) y[first + k] = before + v[k];
  if (t == kBlock - 1) sums[blockIdx.x] = s[t];
}

__global__ void add_tiles_before(float* y, const float* sums, int64_t n) {
  __shared__ float offset;
  if (threadIdx.x == 0) {
    float o = 0.0f;
    for (unsigned b = 0; b < blockIdx.x; ++b) o += sums[b];
    offset = o;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < kTile; k += kBlock) {
    const int64_t i = (int64_t)blockIdx.x * kTile + k;
    if (i < n) y[i] += offset;
  }
}

extern "C" size_t workspace_bytes(int64_t n) { return (n / kTile + 1) * sizeof(float); }

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  const unsigned tiles = n < kTile ? 1 : (unsigned)(n / kTile);
  tile_scan<<<tiles, kBlock, 0, stream>>>(x, y, (float*)workspace, n);
  add_tiles_before<<<tiles, kBlock, 0, stream>>>(y, (float*)workspace, n);
}
