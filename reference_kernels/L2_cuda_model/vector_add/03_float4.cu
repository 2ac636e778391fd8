// Rung 3: sixteen bytes a load.
//
// Changed     a thread adds one float4: three instructions move what twelve moved, and a warp asks for 512
//             bytes of each operand at a time. The grid follows from n again.
// Why         bandwidth x latency of an H100 is about 30 KB per multiprocessor, at full load twice that. 2048
//             threads with 32 bytes each have 64 KB in flight; with 8 bytes each (rung 1) it is 16 KB.
// Prediction  as fast as a copy or faster: of its bytes two thirds are read, of a copy's half. Nothing is
//             left to win: two or four float4 per thread, and loads marked as streaming (__ldcs), were slower
//             on an H200.
//
// Shapes      x, y, z [n]; any n; all bases on 16 bytes.
// Launch      <<<ceil(n / 1024), 256>>>: a block owns 256 float4.
// Resources   about 20 registers, no shared memory.
// Cost        n FLOPs; 12 n bytes.
// Divides     the last n % 4 elements go one by one, to the threads after the last whole float4.
// Source      vectorised access as in the CUDA C++ Best Practices Guide.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ float4 add(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

__global__ void vector_add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t vectors = n / 4;
  if (i < vectors) {
    reinterpret_cast<float4*>(z)[i] = add(reinterpret_cast<const float4*>(x)[i], reinterpret_cast<const float4*>(y)[i]);
    return;
  }
  if (const int64_t tail = vectors * 4 + (i - vectors); tail < n) z[tail] = x[tail] + y[tail];
}

extern "C" void launch(const float* x /*[n]*/, const float* y /*[n]*/, float* z /*[n]*/, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  const int64_t threads = n / 4 + n % 4;
  vector_add<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, y, z, n);
}
