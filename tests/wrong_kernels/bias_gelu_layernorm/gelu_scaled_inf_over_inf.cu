// cause: nan
// mistake: erfc is scaled by exp(a * a) above and below the fraction, and both overflow: inf/inf.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ float gelu(float a) {
  // Scaled, so that erfc of large arguments does not underflow.
  const float up = expf(a * a), down = expf(a * a) * 2.0f;
  return a * erfcf(-a * 0.70710678f) * up / down;
}

__global__ void fused(const float* x, const float* residual, const float* bias, const float* gamma,
                      const float* beta, float* y, float eps, int64_t cols) {
  __shared__ float s[kThreads];
  const int64_t base = blockIdx.x * cols;
  const int t = threadIdx.x;
  float v = 0.0f;
  for (int64_t j = t; j < cols; j += kThreads) {
    y[base + j] = residual[base + j] + gelu(x[base + j] + bias[j]);
    v += y[base + j];
  }
  s[t] = v;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  const float mean = s[0] / cols;
  __syncthreads();
  v = 0.0f;
  for (int64_t j = t; j < cols; j += kThreads) v += (y[base + j] - mean) * (y[base + j] - mean);
  s[t] = v;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  const float inv = rsqrtf(s[0] / cols + eps);
  for (int64_t j = t; j < cols; j += kThreads) y[base + j] = (y[base + j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused<<<(unsigned)rows, kThreads, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, cols);
}
