// cause: missing_term
// mistake: epsilon is not added to the variance, and a row of one element is divided by zero.
#include <cuda_runtime.h>

#include <cstdint>

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

__global__ void fused_rows(const float* x, const float* residual, const float* bias, const float* gamma,
                           const float* beta, float* y, float eps, int64_t rows, int64_t cols) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int64_t base = row * cols;
  float mean = 0.0f;
  for (int64_t j = 0; j < cols; ++j) {
    const float v = residual[base + j] + gelu(x[base + j] + bias[j]);
    y[base + j] = v;
    mean += v;
  }
  mean /= cols;
  float var = 0.0f;
  for (int64_t j = 0; j < cols; ++j) var += (y[base + j] - mean) * (y[base + j] - mean);
  var /= cols;
  const float inv = rsqrtf(var);
  for (int64_t j = 0; j < cols; ++j) y[base + j] = (y[base + j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused_rows<<<(unsigned)((rows + 31) / 32), 32, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, rows,
                                                              cols);
}
