// cause: race
// line: 28
// mistake: shared memory of the maximum is reused for the sum without a __syncthreads in between.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void softmax_block(const float* x, float* y, int64_t rows, int64_t cols) {
  __shared__ float red[kThreads];
  const int tid = threadIdx.x;
  const float* in = x + (int64_t)blockIdx.x * cols;
  float* out = y + (int64_t)blockIdx.x * cols;

  float m = -INFINITY;
  for (int64_t j = tid; j < cols; j += kThreads) m = fmaxf(m, in[j]);
  red[tid] = m;
  __syncthreads();
  for (int s = kThreads / 2; s > 0; s >>= 1) {
    if (tid < s) red[tid] = fmaxf(red[tid], red[tid + s]);
    __syncthreads();
  }
  m = red[0];

  float sum = 0.0f;
  for (int64_t j = tid; j < cols; j += kThreads) sum += expf(in[j] - m);
  red[tid] = sum;
  __syncthreads();
  for (int s = kThreads / 2; s > 0; s >>= 1) {
    if (tid < s) red[tid] += red[tid + s];
    __syncthreads();
  }
  sum = red[0];
  for (int64_t j = tid; j < cols; j += kThreads) out[j] = expf(in[j] - m) / sum;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_block<<<(unsigned)rows, kThreads, 0, stream>>>(x, y, rows, cols);
}
