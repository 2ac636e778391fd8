// cause: swapped
// mistake: bias and GELU are applied to the residual, and x is added as if it were the residual.
#include <cuda_runtime.h>

#include <cstdint>

// One warp per row, four rows per block.
__global__ void fused(const float* x, const float* residual, const float* bias, const float* gamma,
                      const float* beta, float* y, float eps, int64_t rows, int64_t cols) {
  const int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;
  const int64_t base = row * cols;
  float s = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += 32) {
    const float a = residual[base + j] + bias[j];
    const float v = x[base + j] + 0.5f * a * (1.0f + erff(a * 0.70710678f));
    y[base + j] = v;
    s += v;
  }
  for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffffu, s, o);
  const float mean = s / cols;
  float q = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += 32) q += (y[base + j] - mean) * (y[base + j] - mean);
  for (int o = 16; o > 0; o /= 2) q += __shfl_xor_sync(0xffffffffu, q, o);
  const float inv = rsqrtf(q / cols + eps);
  for (int64_t j = threadIdx.x; j < cols; j += 32)
    y[base + j] = (y[base + j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused<<<(unsigned)((rows + 3) / 4), dim3(32, 4), 0, stream>>>(x, residual, bias, gamma, beta, y, eps, rows,
                                                                cols);
}
