// Rung 2: one launch.
//
// Changed     the eight empty launches are gone.
// Why         this is the least that a kernel can take: to be started, to read and write once, to be over.
// Prediction  two to three microseconds; five on an H200 with a cold L2 cache. Nothing in this course is
//             faster.
//
// Shapes      x, y [n], n up to 32.
// Launch      <<<1, 32>>>.
// Resources   a few registers, no shared memory.
// Cost        8 n bytes, and one launch.
// Divides     no divisibility is required: lanes past the end leave.
// Source      this project.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void hand_over(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];
}

extern "C" void launch(const float* x /*[n]*/, float* y /*[n]*/, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  hand_over<<<1, 32, 0, stream>>>(x, y, n);
}
