// cause: constant
// mistake: exp is replaced by exp2 without the factor log2(e).
#include <cuda_runtime.h>

#include <cstdint>

constexpr float kLog2e = 1.0f;

__global__ void softmax_exp2(const float* x, float* y, int64_t cols) {
  __shared__ float s[128];
  const float* in = x + blockIdx.x * cols;
  const int t = threadIdx.x;
  float m = -INFINITY;
  for (int64_t j = t; j < cols; j += 128) m = fmaxf(m, in[j]);
  s[t] = m;
  __syncthreads();
  for (int k = 64; k > 0; k >>= 1) {
    if (t < k) s[t] = fmaxf(s[t], s[t + k]);
    __syncthreads();
  }
  m = s[0];
  __syncthreads();
  float sum = 0.0f;
  for (int64_t j = t; j < cols; j += 128) sum += exp2f((in[j] - m) * kLog2e);
  s[t] = sum;
  __syncthreads();
  for (int k = 64; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  for (int64_t j = t; j < cols; j += 128) y[blockIdx.x * cols + j] = exp2f((in[j] - m) * kLog2e) / s[0];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_exp2<<<(unsigned)rows, 128, 0, stream>>>(x, y, cols);
}
