// cause: missing_term
// mistake: the bias is added after GELU instead of before it.
#include <cuda_runtime.h>

#include <cstdint>

// One warp per row.
__global__ void fused_warp(const float* x, const float* residual, const float* bias, const float* gamma,
                           const float* beta, float* y, float eps, int64_t rows, int64_t cols) {
  const int lane = threadIdx.x % 32;
  const int64_t row = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  float* out = y + row * cols;
  float sum = 0.0f;
  for (int64_t j = lane; j < cols; j += 32) {
    const float a = x[row * cols + j];
    const float v = residual[row * cols + j] + 0.5f * a * (1.0f + erff(a * 0.7071067811865475f)) + bias[j];
    out[j] = v;
    sum += v;
  }
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  const float mean = sum / cols;
  float sq = 0.0f;
  for (int64_t j = lane; j < cols; j += 32) {
    const float d = out[j] - mean;
    sq += d * d;
  }
  for (int o = 16; o > 0; o >>= 1) sq += __shfl_xor_sync(0xffffffffu, sq, o);
  const float inv = 1.0f / sqrtf(sq / cols + eps);
  for (int64_t j = lane; j < cols; j += 32) out[j] = (out[j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused_warp<<<(unsigned)((rows + 7) / 8), 256, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, rows,
                                                             cols);
}
