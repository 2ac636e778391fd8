#include <cuda_runtime.h>
#include <cstdint>

// One block a row: maximum, sum of exponentials, then the quotient.
template <int kThreads>
__global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ y, int64_t cols) {
  __shared__ float shared[kThreads];
  const float* row = x + blockIdx.x * cols;
  float largest = -INFINITY;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) largest = fmaxf(largest, row[c]);
  shared[threadIdx.x] = largest;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  largest = shared[0];
  __syncthreads();
  float sum = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) sum += expf(row[c] - largest);
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
    __syncthreads();
  }
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) y[blockIdx.x * cols + c] = expf(row[c] - largest) / shared[0];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace, cudaStream_t stream) {
  softmax_rows<256><<<static_cast<unsigned>(rows), 256, 0, stream>>>(x, y, cols);
}
