// Rung 3: sixteen bytes a load, four loads under way.
//
// Changed     a thread adds two float4, a block's width apart; it asks for all four operands before it adds. Every byte is
//             used once, so loads and stores are marked as streaming: they leave the caches first.
// Why         bandwidth x latency of an H100 is about 30 KB a multiprocessor, at full load twice that. 2048 threads with
//             64 bytes each have 128 KB under way; with 8 bytes each (rung 1) it is 16 KB.
// Prediction  95 % of a copy or more; nothing is left to win.
//
// Shapes      x, y, z [n]; any n; all bases on 16 bytes.
// Launch      <<<ceil(n / 2048), 256>>>: a block owns 512 float4.
// Resources   about 30 registers, no shared memory.
// Cost        n FLOPs; 12 n bytes.
// Divides     whole blocks only run without a test; the last one tests each vector, and the last n % 4 elements go one by one.
// Source      vectorised access as in the CUDA C++ Best Practices Guide.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kVectors = 2;  // float4 of each operand a thread

__device__ float4 add(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

__global__ void vector_add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z, int64_t n) {
  const float4* x4 = reinterpret_cast<const float4*>(x);
  const float4* y4 = reinterpret_cast<const float4*>(y);
  float4* z4 = reinterpret_cast<float4*>(z);
  const int64_t vectors = n / 4;
  const int64_t block = static_cast<int64_t>(blockIdx.x) * (kThreads * kVectors);
  const int64_t first = block + threadIdx.x;

  if (block + kThreads * kVectors <= vectors) {
    float4 a[kVectors], b[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) a[v] = __ldcs(x4 + first + v * kThreads), b[v] = __ldcs(y4 + first + v * kThreads);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) __stcs(z4 + first + v * kThreads, add(a[v], b[v]));
    return;
  }
  for (int64_t i = first; i < vectors; i += kThreads) z4[i] = add(x4[i], y4[i]);
  if (const int64_t tail = vectors * 4 + threadIdx.x; tail < n) z[tail] = x[tail] + y[tail];
}

extern "C" void launch(const float* x /*[n]*/, const float* y /*[n]*/, float* z /*[n]*/, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  constexpr int64_t kElements = int64_t{4} * kVectors * kThreads;
  vector_add<<<static_cast<unsigned>((n + kElements - 1) / kElements), kThreads, 0, stream>>>(x, y, z, n);
}
