// cause: launch
// line: 37
// mistake: the block has a thread per column, rounded up to a power of two: more than 1024 for long rows.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void softmax_tree(const float* x, float* y, int64_t cols) {
  extern __shared__ float s[];
  const int t = threadIdx.x;
  const float* in = x + blockIdx.x * cols;
  float m = -INFINITY;
  for (int64_t j = t; j < cols; j += blockDim.x) m = fmaxf(m, in[j]);
  s[t] = m;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    if (t < k) s[t] = fmaxf(s[t], s[t + k]);
    __syncthreads();
  }
  m = s[0];
  __syncthreads();
  float sum = 0.0f;
  for (int64_t j = t; j < cols; j += blockDim.x) sum += expf(in[j] - m);
  s[t] = sum;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  for (int64_t j = t; j < cols; j += blockDim.x) y[blockIdx.x * cols + j] = expf(in[j] - m) / s[0];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  int threads = 32;
  while (threads < cols) threads *= 2;
  softmax_tree<<<(unsigned)rows, threads, threads * sizeof(float), stream>>>(x, y, cols);
}
