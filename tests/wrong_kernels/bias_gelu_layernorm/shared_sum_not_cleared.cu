// cause: uninitialised
// line: 27
// mistake: the shared accumulator of the squares is not set to zero before the atomic additions.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void fused_atomic(const float* x, const float* residual, const float* bias, const float* gamma,
                             const float* beta, float* y, float eps, int64_t cols) {
  __shared__ float sum;
  __shared__ float sumsq;
  if (threadIdx.x == 0) {
    sum = 0.0f;
  }
  __syncthreads();
  const int64_t base = blockIdx.x * cols;
  for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    const float a = x[base + j] + bias[j];
    const float v = residual[base + j] + 0.5f * a * (1.0f + erff(a * 0.70710678f));
    y[base + j] = v;
    atomicAdd(&sum, v);
  }
  __syncthreads();
  const float mean = sum / cols;
  for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    const float d = y[base + j] - mean;
    atomicAdd(&sumsq, d * d);
  }
  __syncthreads();
  const float inv = rsqrtf(sumsq / cols + eps);
  for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
    y[base + j] = (y[base + j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused_atomic<<<(unsigned)rows, 128, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, cols);
}
