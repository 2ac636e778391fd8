// Row 2: Adds up in shared memory that it never set to zero.
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

constexpr int kThreads = 256;

__global__ void softmax(const float* x, float* y, int64_t cols) {
  __shared__ float sum;  // never initialised
  __shared__ float most;
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  if (threadIdx.x == 0) {
    most = -FLT_MAX;
    for (int64_t i = 0; i < cols; ++i) most = fmaxf(most, in[i]);
  }
  __syncthreads();
  float mine = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) mine += expf(in[i] - most);
  atomicAdd(&sum, mine);
  __syncthreads();
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) out[i] = expf(in[i] - most) / sum;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  softmax<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, y, cols);
}
