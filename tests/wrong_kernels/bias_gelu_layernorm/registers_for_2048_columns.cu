// cause: unwritten
// mistake: a thread keeps eight columns in registers, and columns from 2048 on are not computed.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kItems = 8;

__device__ float block_sum(float v) {
  __shared__ float s[kThreads / 32];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  __syncthreads();
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0.0f;
  for (int w = 0; w < kThreads / 32; ++w) v += s[w];
  return v;
}

__global__ void row_in_registers(const float* x, const float* residual, const float* bias, const float* gamma,
                                 const float* beta, float* y, float eps, int64_t cols) {
  const int64_t base = blockIdx.x * cols;
  float v[kItems];
  float sum = 0.0f;
  for (int i = 0; i < kItems; ++i) {
    const int64_t j = threadIdx.x + i * kThreads;
    if (j < cols) {
      const float a = x[base + j] + bias[j];
      v[i] = residual[base + j] + a * 0.5f * (1.0f + erff(a * 0.70710678118f));
      sum += v[i];
    }
  }
  const float mean = block_sum(sum) / cols;
  float sq = 0.0f;
  for (int i = 0; i < kItems; ++i)
    if (threadIdx.x + i * kThreads < cols) sq += (v[i] - mean) * (v[i] - mean);
  const float inv = rsqrtf(block_sum(sq) / cols + eps);
  for (int i = 0; i < kItems; ++i) {
    const int64_t j = threadIdx.x + i * kThreads;
    if (j < cols) y[base + j] = (v[i] - mean) * inv * gamma[j] + beta[j];
  }
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  row_in_registers<<<(unsigned)rows, kThreads, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, cols);
}
