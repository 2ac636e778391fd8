// cause: logic
// mistake: mean and variance are taken over the whole matrix instead of over each row.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void activate(const float* x, const float* residual, const float* bias, float* y, int64_t total,
                         int64_t cols) {
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < total;
       i += (int64_t)gridDim.x * blockDim.x) {
    const float a = x[i] + bias[i % cols];
    y[i] = residual[i] + 0.5f * a * (1.0f + erff(a * 0.70710678f));
  }
}

__global__ void normalise(const float* gamma, const float* beta, float* y, float2* stats, float eps,
                          int64_t rows, int64_t cols) {
  __shared__ double s[256];
  const int t = threadIdx.x;
  const int64_t row = blockIdx.x;
  const int64_t first = 0, last = rows * cols;
  double v = 0.0;
  for (int64_t i = first + t; i < last; i += 256) v += y[i];
  s[t] = v;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  const double mean = s[0] / (last - first);
  __syncthreads();
  v = 0.0;
  for (int64_t i = first + t; i < last; i += 256) v += (y[i] - mean) * (y[i] - mean);
  s[t] = v;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) stats[row] = make_float2((float)mean, rsqrtf((float)(s[0] / (last - first)) + eps));
}

__global__ void apply(const float* gamma, const float* beta, float* y, const float2* stats, int64_t cols) {
  const float2 st = stats[blockIdx.x];
  for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    float& v = y[blockIdx.x * cols + j];
    v = (v - st.x) * st.y * gamma[j] + beta[j];
  }
}

extern "C" size_t workspace_bytes(int64_t rows, int64_t cols) { return rows * sizeof(float2); }

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  float2* stats = (float2*)workspace;
  activate<<<64, 256, 0, stream>>>(x, residual, bias, y, rows * cols, cols);
  normalise<<<(unsigned)rows, 256, 0, stream>>>(gamma, beta, y, stats, eps, rows, cols);
  apply<<<(unsigned)rows, 256, 0, stream>>>(gamma, beta, y, stats, cols);
}
