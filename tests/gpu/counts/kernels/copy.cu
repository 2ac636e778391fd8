// Global memory: access patterns of neighbouring lanes. 65,536 floats.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ int thread_of_grid() { return blockIdx.x * kThreads + threadIdx.x; }

// 4 sectors per load, 4 per store.
__global__ void copy_coalesced(const float* x, float* y) {
  const int i = thread_of_grid();
  y[i] = x[i];
}
// One float further: 5 sectors per load.
__global__ void copy_offset(const float* x, float* y) {
  const int i = thread_of_grid();
  y[i] = x[i + 1];
}
// Every second float: 8 sectors per load.
__global__ void copy_stride_2(const float* x, float* y) {
  const int i = thread_of_grid();
  y[i] = x[2 * i];
}
// A sector for each lane: 32 per load.
__global__ void copy_stride_32(const float* x, float* y) {
  const int i = thread_of_grid();
  y[i] = x[32 * i];
}
// 8 bytes per lane: 8 sectors per load, 8 per store.
__global__ void copy_float2(const float* x, float* y) {
  const int i = thread_of_grid();
  reinterpret_cast<float2*>(y)[i] = reinterpret_cast<const float2*>(x)[i];
}
// 16 bytes per lane: 16 sectors per load, 16 per store.
__global__ void copy_float4(const float* x, float* y) {
  const int i = thread_of_grid();
  reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
}
// 2 bytes per lane: 2 sectors per load, 2 per store.
__global__ void copy_halves(const float* x, float* y) {
  const int i = thread_of_grid();
  reinterpret_cast<unsigned short*>(y)[i] = reinterpret_cast<const unsigned short*>(x)[i];
}
// One word for all lanes: 1 sector per load.
__global__ void copy_broadcast(const float* x, float* y) {
  const int i = thread_of_grid();
  y[i] = x[i / 32];
}
// Lanes in reverse order, within and across sectors: 4 sectors per load.
__global__ void copy_reversed(const float* x, float* y) {
  const int i = thread_of_grid();
  y[i] = x[i ^ 31];
}

extern "C" void launch(const float* x, float* y, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const int blocks = static_cast<int>(n) / kThreads;
  copy_coalesced<<<blocks, kThreads, 0, stream>>>(x, y);
  copy_offset<<<blocks - 1, kThreads, 0, stream>>>(x, y);
  copy_stride_2<<<blocks / 2, kThreads, 0, stream>>>(x, y);
  copy_stride_32<<<blocks / 32, kThreads, 0, stream>>>(x, y);
  copy_float2<<<blocks / 2, kThreads, 0, stream>>>(x, y);
  copy_float4<<<blocks / 4, kThreads, 0, stream>>>(x, y);
  copy_halves<<<blocks, kThreads, 0, stream>>>(x, y);
  copy_broadcast<<<blocks, kThreads, 0, stream>>>(x, y);
  copy_reversed<<<blocks, kThreads, 0, stream>>>(x, y);
}
