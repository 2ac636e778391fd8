// Rung 2: sixteen bytes an instruction.
//
// Changed     a thread moves one float4.
// Why         four times the bytes in flight with the same number of threads: 32 KB per multiprocessor each
//             way.
// Prediction  as fast as the driver's own copy: this is 100 %.
//
// Shapes      x, y [n]; any n; both bases on 16 bytes.
// Launch      <<<ceil(n / 1024), 256>>>: a block owns 256 float4.
// Resources   about 12 registers, no shared memory.
// Cost        8 n bytes; nothing is computed.
// Divides     the last n % 4 elements go one by one, to the threads after the last whole float4.
// Source      vectorised access as in the CUDA C++ Best Practices Guide.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t vectors = n / 4;
  if (i < vectors) {
    reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
    return;
  }
  if (const int64_t tail = vectors * 4 + (i - vectors); tail < n) y[tail] = x[tail];
}

extern "C" void launch(const float* x /*[n]*/, float* y /*[n]*/, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const int64_t threads = n / 4 + n % 4;
  copy<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, y, n);
}
