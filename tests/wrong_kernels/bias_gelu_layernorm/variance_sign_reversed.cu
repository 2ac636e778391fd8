// cause: nan
// mistake: the variance is mean * mean - E[v * v], which is negative, and its root is NaN.
#include <cuda_runtime.h>

#include <cstdint>

__device__ double warp_sum(double v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

// One warp per row; the sums are kept in double.
__global__ void fused_double(const float* x, const float* residual, const float* bias, const float* gamma,
                             const float* beta, float* y, float eps, int64_t rows, int64_t cols) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const int64_t base = row * cols;
  double s = 0.0, q = 0.0;
  for (int64_t j = threadIdx.x; j < cols; j += 32) {
    const float a = x[base + j] + bias[j];
    const float v = residual[base + j] + 0.5f * a * (1.0f + erff(a * 0.70710678f));
    y[base + j] = v;
    s += v;
    q += (double)v * v;
  }
  const double mean = warp_sum(s) / cols;
  const double var = mean * mean - warp_sum(q) / cols;
  const float inv = rsqrtf((float)var + eps);
  for (int64_t j = threadIdx.x; j < cols; j += 32)
    y[base + j] = (float)(y[base + j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused_double<<<(unsigned)((rows + 3) / 4), dim3(32, 4), 0, stream>>>(x, residual, bias, gamma, beta, y, eps,
                                                                       rows, cols);
}
