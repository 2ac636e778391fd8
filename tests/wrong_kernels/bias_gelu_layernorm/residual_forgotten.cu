// cause: missing_term
// mistake: the residual is not added.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 128;

__global__ void pre_norm(const float* x, const float* residual, const float* bias, float* h, int64_t total,
                         int64_t cols) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const float a = x[i] + bias[i % cols];
  h[i] = 0.5f * a * (1.0f + erff(a / sqrtf(2.0f)));
}

__global__ void layer_norm(float* y, const float* gamma, const float* beta, float eps, int64_t cols) {
  __shared__ float s[kThreads];
  float* row = y + blockIdx.x * cols;
  float v = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) v += row[j];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  const float mean = s[0] / cols;
  __syncthreads();
  v = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) v += (row[j] - mean) * (row[j] - mean);
  s[threadIdx.x] = v;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  const float inv = rsqrtf(s[0] / cols + eps);
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) row[j] = (row[j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  const int64_t total = rows * cols;
  pre_norm<<<(unsigned)((total + 255) / 256), 256, 0, stream>>>(x, residual, bias, y, total, cols);
  layer_norm<<<(unsigned)rows, kThreads, 0, stream>>>(y, gamma, beta, eps, cols);
}
