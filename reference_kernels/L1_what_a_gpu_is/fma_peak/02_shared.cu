// Rung 2: coefficients in shared memory, four a load.
//
// Changed     a block loads 1024 coefficients into shared memory at a time; a thread reads four of them with
//             one instruction.
// Why         all threads of a warp want the same four words, which shared memory gives to all of them at
//             once: one load for four multiply-adds instead of one for each.
// Prediction  1.5x to 2x rung 1: issuing loads is no longer most of the work, loop and loads still take a
//             share.
//
// Shapes      x, y [n], c [terms]; any n up to 2^31 * 256, any terms.
// Launch      <<<ceil(n / 256), 256>>>.
// Resources   about 30 registers; 4 KB of shared memory.
// Cost        2 n terms FLOPs; 8 n bytes, and a load of 16 bytes for four multiply-adds of a warp.
// Divides     no divisibility is required: coefficients past the last are zero, elements past the last are
//             not stored.
// Source      Horner's rule.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kChunk = 1024;  // coefficients in shared memory at a time

__global__ void polynomial(const float* __restrict__ x, const float* __restrict__ c, float* __restrict__ y, float radius, int64_t n, int64_t terms) {
  __shared__ float4 chunk[kChunk / 4];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const float xi = i < n ? x[i] : 0, t = radius * xi / (1 + fabsf(xi));
  float v = 0;
  for (int64_t begin = (terms - 1) / kChunk * kChunk; begin >= 0; begin -= kChunk) {  // from the highest power down
    __syncthreads();  // all are through with the chunk before
    for (int k = threadIdx.x; k < kChunk; k += kThreads) reinterpret_cast<float*>(chunk)[k] = begin + k < terms ? c[begin + k] : 0;
    __syncthreads();  // this one has come
    const int groups = static_cast<int>(((terms - begin < kChunk ? terms - begin : kChunk) + 3) / 4);
    for (int k = groups - 1; k >= 0; --k) {
      const float4 four = chunk[k];
      v = v * t + four.w;
      v = v * t + four.z;
      v = v * t + four.y;
      v = v * t + four.x;
    }
  }
  if (i < n) y[i] = v;
}

extern "C" void launch(const float* x /*[n]*/, const float* c /*[terms]*/, float* y /*[n]*/, float radius, int64_t n, int64_t terms,
                       void* /*workspace*/, cudaStream_t stream) {
  polynomial<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, c, y, radius, n, terms);
}
