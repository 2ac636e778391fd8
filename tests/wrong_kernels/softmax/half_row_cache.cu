// cause: precision
// mistake: exponentials are kept as half between the passes, which is too coarse for this tolerance.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
using Cache = __half;

__global__ void softmax_cached(const float* x, float* y, int64_t cols) {
  __shared__ Cache row[8192];
  __shared__ float red[kThreads];
  const int tid = threadIdx.x;
  const float* in = x + blockIdx.x * cols;

  float m = -INFINITY;
  for (int64_t j = tid; j < cols; j += kThreads) m = fmaxf(m, in[j]);
  red[tid] = m;
  __syncthreads();
  for (int s = kThreads / 2; s > 0; s >>= 1) {
    if (tid < s) red[tid] = fmaxf(red[tid], red[tid + s]);
    __syncthreads();
  }
  m = red[0];
  __syncthreads();

  float sum = 0.0f;
  for (int64_t j = tid; j < cols; j += kThreads) {
    float e = expf(in[j] - m);
    row[j] = (Cache)e;
    sum += e;
  }
  red[tid] = sum;
  __syncthreads();
  for (int s = kThreads / 2; s > 0; s >>= 1) {
    if (tid < s) red[tid] += red[tid + s];
    __syncthreads();
  }
  for (int64_t j = tid; j < cols; j += kThreads) y[blockIdx.x * cols + j] = (float)row[j] / red[0];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_cached<<<(unsigned)rows, kThreads, 0, stream>>>(x, y, cols);
}
