// Rung 1: one thread, one element.
//
// Changed     nothing yet: a thread moves four bytes.
// Why         the start: an index out of block and thread, a test for the end. Neighbouring threads touch
//             neighbouring words.
// Prediction  well below the driver's copy, 65 % on an H200: too few bytes in flight.
//
// Shapes      x, y [n]; any n up to 2^31 * 256.
// Launch      <<<ceil(n / 256), 256>>>.
// Resources   about 10 registers, no shared memory.
// Cost        8 n bytes; nothing is computed.
// Divides     no divisibility is required: threads past the end leave.
// Source      this project.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) y[i] = x[i];
}

extern "C" void launch(const float* x /*[n]*/, float* y /*[n]*/, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  copy<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, y, n);
}
