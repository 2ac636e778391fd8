// cause: swapped
// mistake: gamma and beta are exchanged: the row is multiplied by beta and gamma is added.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ float block_sum(float v, float* s) {
  s[threadIdx.x] = v;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  const float total = s[0];
  __syncthreads();
  return total;
}

__global__ void bias_gelu_ln(const float* x, const float* residual, const float* bias, const float* gamma,
                             const float* beta, float* y, float eps, int64_t cols) {
  __shared__ float s[kThreads];
  extern __shared__ float row[];
  const int64_t base = blockIdx.x * cols;
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) {
    const float a = x[base + j] + bias[j];
    row[j] = residual[base + j] + a * normcdff(a);
    sum += row[j];
  }
  const float mean = block_sum(sum, s) / cols;
  float sq = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) sq += (row[j] - mean) * (row[j] - mean);
  const float inv = rsqrtf(block_sum(sq, s) / cols + eps);
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) {
    y[base + j] = (row[j] - mean) * inv * beta[j] + gamma[j];
  }
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  bias_gelu_ln<<<(unsigned)rows, kThreads, cols * sizeof(float), stream>>>(x, residual, bias, gamma, beta, y,
                                                                           eps, cols);
}
