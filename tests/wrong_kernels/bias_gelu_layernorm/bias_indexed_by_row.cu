// cause: stride
// line: 14
// mistake: the bias is taken at the row instead of the column.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void add_gelu(const float* x, const float* residual, const float* bias, float* y, int64_t rows,
                         int64_t cols) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i >= rows * cols) return;
  const float a = x[i] + bias[i / cols];
  y[i] = residual[i] + a * normcdff(a);
}

__global__ void norm_row(float* y, const float* gamma, const float* beta, float eps, int64_t rows,
                         int64_t cols) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* r = y + row * cols;
  float mean = 0.0f, m2 = 0.0f;
  for (int64_t j = 0; j < cols; ++j) {  // Welford
    const float d = r[j] - mean;
    mean += d / (j + 1);
    m2 += d * (r[j] - mean);
  }
  const float inv = rsqrtf(m2 / cols + eps);
  for (int64_t j = 0; j < cols; ++j) r[j] = (r[j] - mean) * inv * gamma[j] + beta[j];
}

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma,
                       const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  add_gelu<<<(unsigned)((rows * cols + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, residual, bias, y,
                                                                                         rows, cols);
  norm_row<<<(unsigned)((rows + 63) / 64), 64, 0, stream>>>(y, gamma, beta, eps, rows, cols);
}
