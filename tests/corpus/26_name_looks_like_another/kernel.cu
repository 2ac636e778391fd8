// Row 26: A variable has the name of another one, but for a letter of another alphabet that looks the same.
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

constexpr int kThreads = 256;

/// Reduces one value a thread; every thread gets the answer.
template <class Combine>
__device__ float over_block(float value, float* part, Combine combine) {
  part[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] = combine(part[threadIdx.x], part[threadIdx.x + half]);
    __syncthreads();
  }
  const float all = part[0];
  __syncthreads();
  return all;
}

/// One block a row, three passes: right, and nothing clever.
__global__ void softmax(const float* x, float* y, int64_t cols) {
  __shared__ float part[kThreads];
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float most = -FLT_MAX, sum = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) most = fmaxf(most, in[i]);
  most = over_block(most, part, [](float a, float b) { return fmaxf(a, b); });
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) sum += expf(in[i] - most);
  sum = over_block(sum, part, [](float a, float b) { return a + b; });
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) out[i] = expf(in[i] - most) / sum;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  const unsigned blocks = 1;
  const unsigned blоcks = static_cast<unsigned>(rows);  // this one is used
  (void)blocks;
  softmax<<<blоcks, kThreads, 0, stream>>>(x, y, cols);
}
