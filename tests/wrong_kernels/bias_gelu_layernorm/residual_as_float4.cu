// cause: misaligned
// line: 21
// mistake: residual rows are read as float4 whatever cols is.
#include <cuda_runtime.h>

#include <cstdint>

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

__global__ void fused_vec4(const float* x, const float* residual, const float* bias, const float* gamma,
                           const float* beta, float* y, float eps, int64_t rows, int64_t cols) {
  const int lane = threadIdx.x;
  const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  x += row * cols;
  residual += row * cols;
  y += row * cols;
  const int64_t vecs = cols / 4;
  float s = 0.0f;
  for (int64_t i = lane; i < vecs; i += 32) {
    const float4 r = reinterpret_cast<const float4*>(residual)[i];
    const int64_t j = i * 4;
    y[j] = r.x + gelu(x[j] + bias[j]);
    y[j + 1] = r.y + gelu(x[j + 1] + bias[j + 1]);
    y[j + 2] = r.z + gelu(x[j + 2] + bias[j + 2]);
    y[j + 3] = r.w + gelu(x[j + 3] + bias[j + 3]);
    s += y[j] + y[j + 1] + y[j + 2] + y[j + 3];
  }
  for (int64_t j = vecs * 4 + lane; j < cols; j += 32) {
    y[j] = residual[j] + gelu(x[j] + bias[j]);
    s += y[j];
  }
  for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffffu, s, o);
  const float mean = s / cols;
  __syncwarp();
  float q = 0.0f;
  for (int64_t j = lane; j < cols; j += 32) q += (y[j] - mean) * (y[j] - mean);
  for (int o = 16; o > 0; o /= 2) q += __shfl_xor_sync(0xffffffffu, q, o);
  const float inv = rsqrtf(q / cols + eps);
  for (int64_t j = lane; j < cols; j += 32) y[j] = (y[j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  fused_vec4<<<(unsigned)((rows + 3) / 4), dim3(32, 4), 0, stream>>>(x, residual, bias, gamma, beta, y, eps,
                                                                     rows, cols);
}
