// Row 13: Half of a block waits at a barrier for threads that wait for half of the block.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void deadlock(float* y) {
  __shared__ volatile int arrived;
  if (threadIdx.x == 0) arrived = 0;
  __syncthreads();
  if (threadIdx.x < 128) {
    __syncthreads();
    arrived = 1;
  } else {
    while (arrived == 0) {
    }
  }
  y[threadIdx.x] = 0;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  deadlock<<<1, 256, 0, stream>>>(y);
  (void)x, (void)rows, (void)cols;
}
