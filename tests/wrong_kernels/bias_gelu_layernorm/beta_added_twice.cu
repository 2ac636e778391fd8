// cause: missing_term
// mistake: beta is added in the normalisation and again when the row is stored.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void fused(const float* __restrict__ x, const float* __restrict__ residual,
                      const float* __restrict__ bias, const float* __restrict__ gamma,
                      const float* __restrict__ beta, float* __restrict__ y, float eps, int cols) {
  __shared__ float part[2][8];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const size_t base = (size_t)blockIdx.x * cols;
  float v[16];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int j = threadIdx.x + i * 256;
    v[i] = 0.0f;
    if (j < cols) {
      const float a = x[base + j] + bias[j];
      v[i] = residual[base + j] + 0.5f * a * (1.0f + erff(a * 0.70710678f));
      sum += v[i];
    }
  }
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (lane == 0) part[0][warp] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int w = 0; w < 8; ++w) sum += part[0][w];
  const float mean = sum / cols;
  float sq = 0.0f;
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if ((int)threadIdx.x + i * 256 < cols) sq += (v[i] - mean) * (v[i] - mean);
  for (int o = 16; o > 0; o >>= 1) sq += __shfl_xor_sync(0xffffffffu, sq, o);
  if (lane == 0) part[1][warp] = sq;
  __syncthreads();
  sq = 0.0f;
  for (int w = 0; w < 8; ++w) sq += part[1][w];
  const float inv = rsqrtf(sq / cols + eps);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int j = threadIdx.x + i * 256;
    if (j < cols) {
      v[i] = (v[i] - mean) * inv * gamma[j] + beta[j];
      y[base + j] = v[i] + beta[j];
    }
  }
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused<<<(unsigned)rows, 256, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, (int)cols);
}
