// Rung 4: both banks of registers.
//
// Changed     52 elements per thread instead of eight, and the loop over the coefficients is not unrolled:
//             its body is 208 multiply-adds already.
// Why         registers lie in two banks, those with even numbers and those with odd ones. In rung 3 both
//             factors of every second multiply-add, v[e] and t[e], come from one bank (`cuobjdump -sass`
//             shows the numbers), which costs a cycle. Nothing in C++ names a bank; of the numbers of
//             elements that were compiled, 52 has the fewest such pairs: one in 200.
// Prediction  made before the first run, when the banks were a guess: 1.4x rung 3, 85 to 92 % of the data
//             sheet's peak; no gain if the guess is wrong. An H200 says 1.36x and 84 %. At 2^24 elements its
//             busiest multiprocessor has 20 blocks to do, the average one 19.1: that is 5 % of what is
//             missing.
//
// Shapes      x, y [n], c [terms]; any n up to 2^31 * 6656, any terms.
// Launch      <<<ceil(n / 6656), 128>>>.
// Resources   128 registers; 4 KB of shared memory.
// Cost        2 n terms FLOPs; 8 n bytes, and a load of 16 bytes for 208 multiply-adds of a warp.
// Divides     no divisibility is required: coefficients past the last are zero, elements past the last are
//             not stored.
// Source      Horner's rule; banks as in Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
//             Microbenchmarking", 2018.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 128, kElements = 52;
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
#pragma unroll 1
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
