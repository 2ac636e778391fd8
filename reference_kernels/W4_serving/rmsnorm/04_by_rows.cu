// Rung 4: two launches, one for many rows and one for few.
//
// Changed     more than two rows for each multiprocessor are launched as in rung 2: 256 threads a row, no
//             hints to the caches, and the weight loaded after the sum. Fewer rows are launched as in rung 3:
//             1024 threads a row, and all loads before anything waits.
// Why         where memory is busy all the time, registers that hold the weight early and hints that empty
//             lines early gain nothing and cost 2 %; where rows are few, they save a latency.
// Prediction  at every size as fast as the faster of rungs 2 and 3.
// Came        8192 rows: 86.9 us on an H100, as rung 2 (87.2); 256 rows: 6.27 us; 16 rows: 4.51 us. That is
//             1.00, 1.08 and 1.27 times torch.compile in the same runs.
//
// Shapes      x, y [rows, cols], w [cols], bf16, row-major; any rows, any cols.
// Launch      <<<rows, 256>>>, or <<<rows, 1024>>> where no multiprocessor gets more than two rows.
// Resources   up to 80 registers for the longest rows; 128 bytes of shared memory; no workspace.
// Cost        4 * rows * cols FLOPs; 4 * rows * cols bytes, and the weight from a cache for each row.
// Divides     cols % 8 == 0 and cols <= 16384 for the fast kernels; other shapes take the kernel of rung 1.
// Source      the measured times of rungs 2 and 3.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;       // of a block, if there are many rows
constexpr int kMoreThreads = 1024;  // if there are few
constexpr int64_t kMostColumns = 16384;

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

/// The sum of `v` over the block, in every thread. `partial` [32] must not be in use.
__device__ float block_sum(float v, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : 0.0f;
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

/// With a hint that the line will not be read again, or without one.
template <bool kHint>
__device__ uint4 load(const uint4* from) {
  return kHint ? __ldcs(from) : *from;
}
template <bool kHint>
__device__ void store(uint4* to, uint4 value) {
  if (kHint)
    __stcs(to, value);
  else
    *to = value;
}

/// A row by a block. Where rows are few, every load is on its way before anything waits.
template <int kBlock, int kVectors, bool kFewRows>
__global__ void __launch_bounds__(kBlock)
    rmsnorm_row(const uint4* __restrict__ x, const uint4* __restrict__ w, uint4* __restrict__ y, float eps,
                int vectors) {
  __shared__ float partial[32];
  const int64_t start = static_cast<int64_t>(blockIdx.x) * vectors;
  uint4 held[kVectors], weight[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kBlock;
    held[k] = i < vectors ? load<kFewRows>(x + start + i) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (const int i = threadIdx.x + k * kBlock; kFewRows && i < vectors) weight[k] = w[i];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) sum += squares(held[k]);
  const float scale = rsqrtf(block_sum(sum, partial) / static_cast<float>(8 * vectors) + eps);
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (const int i = threadIdx.x + k * kBlock; i < vectors)
      store<kFewRows>(y + start + i, scaled(held[k], kFewRows ? weight[k] : w[i], scale));
}

/// Any cols: element by element, as in rung 1.
__global__ void rmsnorm_ragged(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, float eps,
                               int64_t cols) {
  __shared__ float partial[32];
  const int64_t start = blockIdx.x * cols;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const float v = __bfloat162float(x[start + i]);
    sum += v * v;
  }
  const float scale = rsqrtf(block_sum(sum, partial) / static_cast<float>(cols) + eps);
  for (int64_t i = threadIdx.x; i < cols; i += kThreads)
    y[start + i] = __float2bfloat16(__bfloat162float(x[start + i]) * scale * __bfloat162float(w[i]));
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, const __nv_bfloat16* w /*[cols]*/,
                       __nv_bfloat16* y /*[rows,cols]*/, float eps, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  if (cols % 8 != 0 || cols > kMostColumns) {
    rmsnorm_ragged<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, w, y, eps, cols);
    return;
  }
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int vectors = static_cast<int>(cols / 8);
  const auto* from = reinterpret_cast<const uint4*>(x);
  const auto* weight = reinterpret_cast<const uint4*>(w);
  auto* to = reinterpret_cast<uint4*>(y);
  const bool few = rows <= 2 * multiprocessors && vectors > kThreads;
  const auto kernel =
      few ? vectors <= kMoreThreads ? rmsnorm_row<kMoreThreads, 1, true> : rmsnorm_row<kMoreThreads, 2, true>
      : vectors <= kThreads     ? rmsnorm_row<kThreads, 1, false>
      : vectors <= 2 * kThreads ? rmsnorm_row<kThreads, 2, false>
      : vectors <= 4 * kThreads ? rmsnorm_row<kThreads, 4, false>
                                : rmsnorm_row<kThreads, 8, false>;
  kernel<<<static_cast<unsigned>(rows), few ? kMoreThreads : kThreads, 0, stream>>>(from, weight, to, eps,
                                                                                    vectors);
}
