// Rung 3: everything that a thread needs is on its way before it waits for anything.
//
// Changed     the weight's vectors are loaded together with the row's. x is read and y is written as a
//             stream (evict first), so that the weight stays in the L1 cache. A matrix of few rows gets 1024
//             threads a row.
// Why         in rung 2 a block waits for memory, meets, and then waits for the weight: two latencies one
//             after the other. With many rows other blocks fill the gap; with 256 rows there are no other
//             blocks, and the kernel takes as long as its longest chain of waits.
// Prediction  nothing at 8192 rows, where memory is busy all the time; at 256 and at 16 rows one latency
//             less of about four: 1.2x.
// Came        90.5 us on an H100, 2965 GB/s, 0.98 times the rung before. 98 % of the native baseline.
//
// Shapes      x, y [rows, cols], w [cols], bf16, row-major; any rows, any cols.
// Launch      <<<rows, 256>>>, or <<<rows, 1024>>> where all rows fit on the GPU at once.
// Resources   up to 80 registers for the longest rows, 40 at 8192 columns; 128 bytes of shared memory; no
//             workspace.
// Cost        4 * rows * cols FLOPs; 4 * rows * cols bytes, and the weight from a cache for each row.
// Divides     cols % 8 == 0 and cols <= 16384 for the fast kernel; other shapes take the kernel of rung 1.
// Source      Little's law (bytes in flight = latency x bandwidth).
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;       // of a block, if there are many rows
constexpr int kMostThreads = 1024;  // if there are few
constexpr int64_t kManyRows = 264;  // more than two for each multiprocessor of a large GPU
constexpr int kMostVectors = 8;     // of a thread

/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ unsigned pack(float a, float b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return reinterpret_cast<const unsigned&>(both);
}
__device__ float squares(unsigned word) { return low(word) * low(word) + high(word) * high(word); }
__device__ float squares(uint4 v) { return squares(v.x) + squares(v.y) + squares(v.z) + squares(v.w); }
__device__ unsigned scaled(unsigned x, unsigned w, float scale) {
  return pack(low(x) * scale * low(w), high(x) * scale * high(w));
}
__device__ uint4 scaled(uint4 x, uint4 w, float scale) {
  return make_uint4(scaled(x.x, w.x, scale), scaled(x.y, w.y, scale), scaled(x.z, w.z, scale),
                    scaled(x.w, w.w, scale));
}

/// The sum of `v` over the block, in every thread.
__device__ float block_sum(float v) {
  __shared__ float partial[32];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : 0.0f;
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

template <int kBlock, int kVectors>
__global__ void __launch_bounds__(kBlock) rmsnorm(const uint4* __restrict__ x, const uint4* __restrict__ w,
                                                  uint4* __restrict__ y, float eps, int vectors) {
  const int64_t start = static_cast<int64_t>(blockIdx.x) * vectors;
  uint4 held[kVectors], weight[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kBlock;
    held[k] = i < vectors ? __ldcs(x + start + i) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kBlock;
    if (i < vectors) weight[k] = w[i];
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) sum += squares(held[k]);
  const float scale = rsqrtf(block_sum(sum) / static_cast<float>(8 * vectors) + eps);
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kBlock;
    if (i < vectors) __stcs(y + start + i, scaled(held[k], weight[k], scale));
  }
}

/// Any cols: element by element, as in rung 1.
__global__ void rmsnorm_ragged(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, float eps,
                               int64_t cols) {
  const int64_t start = blockIdx.x * cols;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const float v = __bfloat162float(x[start + i]);
    sum += v * v;
  }
  const float scale = rsqrtf(block_sum(sum) / static_cast<float>(cols) + eps);
  for (int64_t i = threadIdx.x; i < cols; i += kThreads)
    y[start + i] = __float2bfloat16(__bfloat162float(x[start + i]) * scale * __bfloat162float(w[i]));
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, const __nv_bfloat16* w /*[cols]*/,
                       __nv_bfloat16* y /*[rows,cols]*/, float eps, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  if (cols % 8 != 0 || cols > 8 * kThreads * kMostVectors) {
    rmsnorm_ragged<<<blocks, kThreads, 0, stream>>>(x, w, y, eps, cols);
    return;
  }
  const int vectors = static_cast<int>(cols / 8);
  const bool few = rows < kManyRows && vectors > kThreads;
  const auto kernel = few ? vectors <= kMostThreads ? rmsnorm<kMostThreads, 1> : rmsnorm<kMostThreads, 2>
                      : vectors <= kThreads     ? rmsnorm<kThreads, 1>
                      : vectors <= 2 * kThreads ? rmsnorm<kThreads, 2>
                      : vectors <= 4 * kThreads ? rmsnorm<kThreads, 4>
                                                : rmsnorm<kThreads, kMostVectors>;
  kernel<<<blocks, few ? kMostThreads : kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(x),
                                                               reinterpret_cast<const uint4*>(w),
                                                               reinterpret_cast<uint4*>(y), eps, vectors);
}
