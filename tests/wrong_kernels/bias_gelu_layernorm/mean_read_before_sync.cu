// cause: race
// line: 30
// mistake: the mean is read from shared memory without a barrier after thread 0 has written it.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 128;

__global__ void fused_mean(const float* x, const float* residual, const float* bias, const float* gamma,
                           const float* beta, float* y, float eps, int64_t cols) {
  __shared__ float part[kThreads];
  __shared__ float mean, inv;
  const int t = threadIdx.x;
  const int64_t base = blockIdx.x * cols;
  float s = 0.0f;
  for (int64_t j = t; j < cols; j += kThreads) {
    const float a = x[base + j] + bias[j];
    y[base + j] = residual[base + j] + 0.5f * a * (1.0f + erff(a * 0.70710678f));
    s += y[base + j];
  }
  part[t] = s;
  __syncthreads();
  if (t == 0) {
    float total = 0.0f;
    for (int i = 0; i < kThreads; ++i) total += part[i];
    mean = total / cols;
  }
  s = 0.0f;
  for (int64_t j = t; j < cols; j += kThreads) s += (y[base + j] - mean) * (y[base + j] - mean);
  __syncthreads();
  part[t] = s;
  __syncthreads();
  if (t == 0) {
    float total = 0.0f;
    for (int i = 0; i < kThreads; ++i) total += part[i];
    inv = rsqrtf(total / cols + eps);
  }
  __syncthreads();
  for (int64_t j = t; j < cols; j += kThreads) y[base + j] = (y[base + j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused_mean<<<(unsigned)rows, kThreads, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, cols);
}
