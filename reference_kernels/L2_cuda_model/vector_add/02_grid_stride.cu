// Rung 2: a grid as large as the GPU, and a loop.
//
// Changed     the number of blocks follows from the machine, not from n: eight blocks of 256 threads per
//             multiprocessor stay for the whole vector, and each thread takes every (threads of the grid)-th
//             element.
// Why         one launch fits any n, blocks are started once instead of half a million times, and the loop
//             gives the compiler several elements to have in flight. Neighbouring threads stay neighbours:
//             still coalesced.
// Prediction  as fast as rung 1, within a few percent: the bytes are the same. What it wins is a shape to
//             build on.
//
// Shapes      x, y, z [n]; any n.
// Launch      <<<min(8 * multiprocessors, ceil(n / 256)), 256>>>: every thread that the GPU can hold, once.
// Resources   about 32 registers (the loop is unrolled by four), no shared memory.
// Cost        n FLOPs; 12 n bytes.
// Divides     no divisibility is required.
// Source      M. Harris, "CUDA Pro Tip: Write Flexible Kernels with Grid-Stride Loops", 2013.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

constexpr int kThreads = 256, kBlocksPerMultiprocessor = 8;

__global__ void vector_add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) z[i] = x[i] + y[i];
}

int multiprocessors() {
  int device = 0, count = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

extern "C" void launch(const float* x /*[n]*/, const float* y /*[n]*/, float* z /*[n]*/, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(multiprocessors() * kBlocksPerMultiprocessor, (n + kThreads - 1) / kThreads);
  vector_add<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, y, z, n);
}
