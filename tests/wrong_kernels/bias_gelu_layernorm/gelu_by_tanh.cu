// cause: precision
// mistake: GELU by the tanh approximation, which is too coarse for the tolerance.
#include <cuda_runtime.h>

#include <cstdint>

__device__ float gelu(float v) {
  return 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}

__global__ void fused_block(const float* x, const float* residual, const float* bias, const float* gamma,
                            const float* beta, float* y, float eps, int64_t cols) {
  __shared__ float sums[32];
  const int64_t base = blockIdx.x * cols;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  float s = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    y[base + j] = residual[base + j] + gelu(x[base + j] + bias[j]);
    s += y[base + j];
  }
  for (int o = 16; o > 0; o /= 2) s += __shfl_down_sync(0xffffffffu, s, o);
  if (lane == 0) sums[warp] = s;
  __syncthreads();
  float mean = 0.0f;
  for (int w = 0; w < warps; ++w) mean += sums[w];
  mean /= cols;
  __syncthreads();
  s = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) s += (y[base + j] - mean) * (y[base + j] - mean);
  for (int o = 16; o > 0; o /= 2) s += __shfl_down_sync(0xffffffffu, s, o);
  if (lane == 0) sums[warp] = s;
  __syncthreads();
  float var = 0.0f;
  for (int w = 0; w < warps; ++w) var += sums[w];
  var /= cols;
  for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
    y[base + j] = (y[base + j] - mean) / sqrtf(var + eps) * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused_block<<<(unsigned)rows, 128, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, cols);
}
