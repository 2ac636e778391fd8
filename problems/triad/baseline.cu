// Native baseline: a = b + s c, fp32, as a framework's elementwise kernel does it: four elements a thread, 16-byte accesses.
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kThreads = 256;

/// One float4 a thread; the threads behind the last whole one take the tail element by element.
__global__ void triad(const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ a, float s, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t vectors = n / 4;
  if (i < vectors) {
    const float4 u = reinterpret_cast<const float4*>(b)[i], v = reinterpret_cast<const float4*>(c)[i];
    reinterpret_cast<float4*>(a)[i] = make_float4(u.x + s * v.x, u.y + s * v.y, u.z + s * v.z, u.w + s * v.w);
  } else if (const int64_t tail = vectors * 4 + (i - vectors); tail < n) {
    a[tail] = b[tail] + s * c[tail];
  }
}

}  // namespace

extern "C" const char* baseline_label() { return "native triad, float4, fp32"; }

extern "C" void launch(const float* b /*[n]*/, const float* c /*[n]*/, float* a /*[n]*/, float s, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  const int64_t threads = n / 4 + n % 4;
  triad<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream>>>(b, c, a, s, n);
}
