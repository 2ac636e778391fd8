// Native baseline: Horner's rule, four elements a thread, coefficients four at a time from shared memory, fp32.
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kThreads = 256, kElements = 4;
constexpr int kChunk = 1024;  // coefficients in shared memory at a time

__global__ void polynomial(const float* __restrict__ x, const float* __restrict__ c, float* __restrict__ y, float radius, int64_t n, int64_t terms) {
  __shared__ float4 chunk[kChunk / 4];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kElements) + threadIdx.x;
  float t[kElements], v[kElements] = {};
#pragma unroll
  for (int e = 0; e < kElements; ++e) {
    const float xe = first + e * kThreads < n ? x[first + e * kThreads] : 0;
    t[e] = radius * xe / (1 + fabsf(xe));
  }
  for (int64_t begin = (terms - 1) / kChunk * kChunk; begin >= 0; begin -= kChunk) {  // from the highest power down
    __syncthreads();  // all are through with the chunk before
    for (int i = threadIdx.x; i < kChunk; i += kThreads) reinterpret_cast<float*>(chunk)[i] = begin + i < terms ? c[begin + i] : 0;
    __syncthreads();  // this one has come
    const int groups = static_cast<int>(((terms - begin < kChunk ? terms - begin : kChunk) + 3) / 4);
#pragma unroll 4
    for (int i = groups - 1; i >= 0; --i) {
      const float4 four = chunk[i];
#pragma unroll
      for (int e = 0; e < kElements; ++e) v[e] = ((v[e] * t[e] + four.w) * t[e] + four.z) * t[e] + four.y, v[e] = v[e] * t[e] + four.x;
    }
  }
#pragma unroll
  for (int e = 0; e < kElements; ++e)
    if (first + e * kThreads < n) y[first + e * kThreads] = v[e];
}

}  // namespace

extern "C" const char* baseline_label() { return "native Horner's rule, four elements a thread, fp32"; }

extern "C" void launch(const float* x /*[n]*/, const float* c /*[terms]*/, float* y /*[n]*/, float radius, int64_t n, int64_t terms,
                       void* /*workspace*/, cudaStream_t stream) {
  constexpr int64_t kShare = kThreads * kElements;
  polynomial<<<static_cast<unsigned>((n + kShare - 1) / kShare), kThreads, 0, stream>>>(x, c, y, radius, n, terms);
}
