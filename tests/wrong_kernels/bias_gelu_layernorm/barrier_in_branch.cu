// cause: deadlock
// line: 16
// mistake: __syncthreads stands inside the branch of the tree, which not all threads of the block take.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ float block_sum(float v, float* s) {
  s[threadIdx.x] = v;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) {
      s[threadIdx.x] += s[threadIdx.x + k];
      __syncthreads();
    }
  }
  const float total = s[0];
  __syncthreads();
  return total;
}

__global__ void bias_gelu_ln(const float* x, const float* residual, const float* bias, const float* gamma,
                             const float* beta, float* y, float eps, int64_t cols) {
  __shared__ float s[kThreads];
  const int64_t base = blockIdx.x * cols;
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) {
    const float a = x[base + j] + bias[j];
    const float v = residual[base + j] + 0.5f * a * (1.0f + erff(a * 0.70710678f));
    y[base + j] = v;
    sum += v;
  }
  const float mean = block_sum(sum, s) / cols;
  float sq = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) sq += (y[base + j] - mean) * (y[base + j] - mean);
  const float inv = rsqrtf(block_sum(sq, s) / cols + eps);
  for (int64_t j = threadIdx.x; j < cols; j += kThreads)
    y[base + j] = (y[base + j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  bias_gelu_ln<<<(unsigned)rows, kThreads, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, cols);
}
