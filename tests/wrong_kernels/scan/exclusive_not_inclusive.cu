// cause: off_by_one
// mistake: the value is stored before its own element is added: the scan is exclusive.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kChunk = 64;

// Each thread owns 64 elements: first their sums, then a scan of the sums, then the elements.
__global__ void chunk_sums(const float* x, float* sums, int64_t n, int64_t chunks) {
  const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= chunks) return;
  float s = 0.0f;
  for (int64_t i = c * kChunk; i < n && i < (c + 1) * kChunk; ++i) s += x[i];
  sums[c] = s;
}

__global__ void scan_serial(float* sums, int64_t chunks) {
  float run = 0.0f;
  for (int64_t c = 0; c < chunks; ++c) {
    float s = sums[c];
    sums[c] = run;
    run += s;
  }
}

__global__ void chunk_scan(const float* x, float* y, const float* sums, int64_t n, int64_t chunks) {
  const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= chunks) return;
  float run = sums[c];
  for (int64_t i = c * kChunk; i < n && i < (c + 1) * kChunk; ++i) {
    y[i] = run;
    run += x[i];
  }
}

extern "C" size_t workspace_bytes(int64_t n) { return (n + kChunk - 1) / kChunk * sizeof(float); }

extern "C" void launch(const float* x, float* y, int64_t n, void* workspace, cudaStream_t stream) {
  float* sums = (float*)workspace;
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  const unsigned blocks = (unsigned)((chunks + 127) / 128);
  chunk_sums<<<blocks, 128, 0, stream>>>(x, sums, n, chunks);
  scan_serial<<<1, 1, 0, stream>>>(sums, chunks);
  chunk_scan<<<blocks, 128, 0, stream>>>(x, y, sums, n, chunks);
}
