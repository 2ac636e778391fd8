// Rung 3: everything that a thread needs is on its way before it waits for anything.
//
// Changed     the vectors of both streams and of the weight are loaded first. The sum is stored at once,
//             while the block still adds up its squares. x, residual and y are streams (evict first), so
//             that the weight stays in the L1 cache. A matrix of few rows gets 1024 threads a row.
// Why         in rung 2 a block waits for memory, meets, waits for the weight, and only then stores
//             anything. With 256 rows there are no other blocks that could fill these gaps.
// Prediction  nothing at 8192 rows; at 256 and at 16 rows one latency less of about four: 1.2x.
// Came        182 us on an H100, 2955 GB/s, 1.00 times the rung before. 100 % of the native baseline.
//
// Shapes      x, residual, y [rows, cols], w [cols], bf16, row-major; any rows, any cols.
// Launch      <<<rows, 256>>>, or <<<rows, 1024>>> where all rows fit on the GPU at once.
// Resources   up to 122 registers for the longest rows, 64 at 8192 columns; 128 bytes of shared memory.
// Cost        5 * rows * cols FLOPs; 8 * rows * cols bytes, and the weight from a cache for each row.
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
/// The sum of the residual stream and x, rounded to bf16.
__device__ unsigned added(unsigned a, unsigned b) { return pack(low(a) + low(b), high(a) + high(b)); }
__device__ uint4 added(uint4 a, uint4 b) {
  return make_uint4(added(a.x, b.x), added(a.y, b.y), added(a.z, b.z), added(a.w, b.w));
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
__global__ void __launch_bounds__(kBlock)
    add_rmsnorm(const uint4* __restrict__ x, uint4* __restrict__ residual, const uint4* __restrict__ w,
                uint4* __restrict__ y, float eps, int vectors) {
  const int64_t start = static_cast<int64_t>(blockIdx.x) * vectors;
  uint4 held[kVectors], other[kVectors], weight[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kBlock;
    held[k] = i < vectors ? __ldcs(residual + start + i) : make_uint4(0, 0, 0, 0);
    other[k] = i < vectors ? __ldcs(x + start + i) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kBlock;
    if (i < vectors) weight[k] = w[i];
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kBlock;
    held[k] = added(held[k], other[k]);
    if (i < vectors) __stcs(residual + start + i, held[k]);
    sum += squares(held[k]);
  }
  const float scale = rsqrtf(block_sum(sum) / static_cast<float>(8 * vectors) + eps);
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kBlock;
    if (i < vectors) __stcs(y + start + i, scaled(held[k], weight[k], scale));
  }
}

/// Any cols: element by element, as in rung 1.
__global__ void add_rmsnorm_ragged(const __nv_bfloat16* x, __nv_bfloat16* residual, const __nv_bfloat16* w,
                                   __nv_bfloat16* y, float eps, int64_t cols) {
  const int64_t start = blockIdx.x * cols;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const __nv_bfloat16 v =
        __float2bfloat16(__bfloat162float(residual[start + i]) + __bfloat162float(x[start + i]));
    residual[start + i] = v;
    sum += __bfloat162float(v) * __bfloat162float(v);
  }
  const float scale = rsqrtf(block_sum(sum) / static_cast<float>(cols) + eps);
  for (int64_t i = threadIdx.x; i < cols; i += kThreads)
    y[start + i] = __float2bfloat16(__bfloat162float(residual[start + i]) * scale * __bfloat162float(w[i]));
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, __nv_bfloat16* residual /*[rows,cols]*/,
                       const __nv_bfloat16* w /*[cols]*/, __nv_bfloat16* y /*[rows,cols]*/, float eps,
                       int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  if (cols % 8 != 0 || cols > 8 * kThreads * kMostVectors) {
    add_rmsnorm_ragged<<<blocks, kThreads, 0, stream>>>(x, residual, w, y, eps, cols);
    return;
  }
  const int vectors = static_cast<int>(cols / 8);
  const bool few = rows < kManyRows && vectors > kThreads;
  const auto kernel =
      few ? vectors <= kMostThreads ? add_rmsnorm<kMostThreads, 1> : add_rmsnorm<kMostThreads, 2>
      : vectors <= kThreads     ? add_rmsnorm<kThreads, 1>
      : vectors <= 2 * kThreads ? add_rmsnorm<kThreads, 2>
      : vectors <= 4 * kThreads ? add_rmsnorm<kThreads, 4>
                                : add_rmsnorm<kThreads, kMostVectors>;
  kernel<<<blocks, few ? kMostThreads : kThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(x), reinterpret_cast<uint4*>(residual),
      reinterpret_cast<const uint4*>(w), reinterpret_cast<uint4*>(y), eps, vectors);
}
