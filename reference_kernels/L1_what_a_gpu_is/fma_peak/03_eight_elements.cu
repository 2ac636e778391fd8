// Rung 3: eight elements a thread share each coefficient.
//
// Changed     a thread evaluates eight polynomials side by side.
// Why         one load of four coefficients now feeds 32 multiply-adds, and the eight chains do not wait for
//             one another: what is left besides the multiply-adds is a few percent of all instructions.
// Prediction  counting instructions, 95 % of the peak. An H200 reaches 61 %: something else is the limit,
//             which rung 4 takes away.
//
// Shapes      x, y [n], c [terms]; any n up to 2^31 * 2048, any terms.
// Launch      <<<ceil(n / 2048), 256>>>.
// Resources   about 40 registers; 4 KB of shared memory.
// Cost        2 n terms FLOPs; 8 n bytes, and a load of 16 bytes for 32 multiply-adds of a warp.
// Divides     no divisibility is required: coefficients past the last are zero, elements past the last are
//             not stored.
// Source      Horner's rule.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256, kElements = 8;
constexpr int kChunk = 1024;  // coefficients in shared memory at a time

__global__ void polynomials(const float* __restrict__ x, const float* __restrict__ c, float* __restrict__ y, float radius, int64_t n, int64_t terms) {
  __shared__ float4 chunk[kChunk / 4];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kElements) + threadIdx.x;  // its elements are a block's width apart
  float t[kElements], v[kElements] = {};
#pragma unroll
  for (int e = 0; e < kElements; ++e) {
    const float xe = first + e * kThreads < n ? x[first + e * kThreads] : 0;
    t[e] = radius * xe / (1 + fabsf(xe));
  }
  for (int64_t begin = (terms - 1) / kChunk * kChunk; begin >= 0; begin -= kChunk) {  // from the highest power down
    __syncthreads();  // all are through with the chunk before
    for (int k = threadIdx.x; k < kChunk; k += kThreads) reinterpret_cast<float*>(chunk)[k] = begin + k < terms ? c[begin + k] : 0;
    __syncthreads();  // this one has come
    const int groups = static_cast<int>(((terms - begin < kChunk ? terms - begin : kChunk) + 3) / 4);
#pragma unroll 4
    for (int k = groups - 1; k >= 0; --k) {
      const float4 four = chunk[k];
#pragma unroll
      for (int e = 0; e < kElements; ++e) v[e] = v[e] * t[e] + four.w;
#pragma unroll
      for (int e = 0; e < kElements; ++e) v[e] = v[e] * t[e] + four.z;
#pragma unroll
      for (int e = 0; e < kElements; ++e) v[e] = v[e] * t[e] + four.y;
#pragma unroll
      for (int e = 0; e < kElements; ++e) v[e] = v[e] * t[e] + four.x;
    }
  }
#pragma unroll
  for (int e = 0; e < kElements; ++e)
    if (first + e * kThreads < n) y[first + e * kThreads] = v[e];
}

extern "C" void launch(const float* x /*[n]*/, const float* c /*[terms]*/, float* y /*[n]*/, float radius, int64_t n, int64_t terms,
                       void* /*workspace*/, cudaStream_t stream) {
  constexpr int64_t kShare = kThreads * kElements;
  polynomials<<<static_cast<unsigned>((n + kShare - 1) / kShare), kThreads, 0, stream>>>(x, c, y, radius, n, terms);
}
