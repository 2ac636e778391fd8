// cause: partial_reduction
// mistake: the variance is divided by cols - 1, which also makes a row of one element 0/0.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void fused(const float* x, const float* residual, const float* bias, const float* gamma,
                      const float* beta, float* y, float eps, int64_t cols) {
  __shared__ float total, squares;
  const int64_t base = blockIdx.x * cols;
  if (threadIdx.x == 0) total = squares = 0.0f;
  __syncthreads();
  float t = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) {
    const float a = x[base + j] + bias[j];
    const float v = fmaf(a, normcdff(a), residual[base + j]);
    y[base + j] = v;
    t += v;
  }
  atomicAdd(&total, t);
  __syncthreads();
  const float mean = total / (float)cols;
  t = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) t += (y[base + j] - mean) * (y[base + j] - mean);
  atomicAdd(&squares, t);
  __syncthreads();
  const float inv = rsqrtf(squares / (float)(cols - 1) + eps);
  for (int64_t j = threadIdx.x; j < cols; j += kThreads)
    y[base + j] = gamma[j] * (y[base + j] - mean) * inv + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused<<<(unsigned)rows, kThreads, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, cols);
}
