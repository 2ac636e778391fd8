// cause: precision
// mistake: the row is kept as half between the passes.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

using stored = __half;

__device__ float block_sum(float v) {
  __shared__ float part[kThreads / 32];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  float s = 0.0f;
  for (int w = 0; w < kThreads / 32; ++w) s += part[w];
  __syncthreads();
  return s;
}

__global__ void fused_cached(const float* x, const float* residual, const float* bias, const float* gamma,
                             const float* beta, float* y, float eps, int64_t cols) {
  __shared__ stored row[4096];
  const int64_t base = blockIdx.x * cols;
  float s = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) {
    const float a = x[base + j] + bias[j];
    row[j] = (stored)(residual[base + j] + 0.5f * a * (1.0f + erff(a * 0.70710678f)));
    s += (float)row[j];
  }
  const float mean = block_sum(s) / cols;
  float q = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) q += ((float)row[j] - mean) * ((float)row[j] - mean);
  const float inv = rsqrtf(block_sum(q) / cols + eps);
  for (int64_t j = threadIdx.x; j < cols; j += kThreads)
    y[base + j] = ((float)row[j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused_cached<<<(unsigned)rows, kThreads, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, cols);
}
