// Rung 4: a block stays, and its next row is on its way while it works on this one.
//
// Changed     as many blocks as fit stay until the end and take every gridDim.x-th row. The weight is loaded
//             once, and the next row's vectors of both streams travel to registers while this one is added
//             up and stored. Few rows are shared by clusters of eight blocks: each holds an eighth of a row
//             and writes its sum into the shared memory of the others.
// Why         a block of rung 3 begins with nothing under way and ends with nothing under way; and 16 rows
//             on 16 multiprocessors use an eighth of the GPU's ways to memory.
// Prediction  many rows: 1.02x, the gaps between blocks; 16 rows: the loads of a multiprocessor shrink from
//             32 KB to 4 KB, but the meeting of a cluster costs about what that saves.
// Came        188 us on an H100, 2862 GB/s, 0.97 times the rung before. 97 % of the native baseline.
//
// Shapes      x, residual, y [rows, cols], w [cols], bf16, row-major; any rows, any cols.
// Launch      <<<blocks that fit, 512>>>, or clusters of 8 blocks of 128 threads, one cluster a row, where
//             the rows are fewer than multiprocessors.
// Resources   up to 128 registers for the longest rows; 256 bytes of shared memory; no workspace.
// Cost        5 * rows * cols FLOPs; 8 * rows * cols bytes, and the weight once for each block.
// Divides     cols % 8 == 0 and cols <= 16384 for the fast kernels; other shapes take the kernel of rung 1.
// Source      persistent blocks; thread-block clusters, CUDA C++ Programming Guide. Clusters need a GPU of
//             compute capability 9.0.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace cg = cooperative_groups;

constexpr int kThreads = 512;  // of a block that stays
constexpr int kCluster = 8, kClusterThreads = 128;
constexpr int64_t kMostColumns = 16384;

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

/// The sum of `v` over the block, in every thread. `partial` [32] must not be in use.
__device__ float block_sum(float v, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : 0.0f;
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

/// Every gridDim.x-th row.
template <int kVectors>
__global__ void __launch_bounds__(kThreads)
    add_rmsnorm_rows(const uint4* __restrict__ x, uint4* __restrict__ residual, const uint4* __restrict__ w,
                     uint4* __restrict__ y, float eps, int64_t rows, int vectors) {
  __shared__ float partial[2][32];  // two, so that one barrier a row suffices
  uint4 weight[kVectors], next[kVectors], next_sum[kVectors];
  const auto fetch = [&](int64_t row) {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const int i = threadIdx.x + k * kThreads;
      const bool there = row < rows && i < vectors;
      next[k] = there ? __ldcs(x + row * vectors + i) : make_uint4(0, 0, 0, 0);
      next_sum[k] = there ? __ldcs(residual + row * vectors + i) : make_uint4(0, 0, 0, 0);
    }
  };
  fetch(blockIdx.x);
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (const int i = threadIdx.x + k * kThreads; i < vectors) weight[k] = w[i];
  int parity = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, parity ^= 1) {
    uint4 held[kVectors];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      held[k] = added(next_sum[k], next[k]);
      sum += squares(held[k]);
    }
    fetch(row + gridDim.x);
    const float scale = rsqrtf(block_sum(sum, partial[parity]) / static_cast<float>(8 * vectors) + eps);
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
      if (const int i = threadIdx.x + k * kThreads; i < vectors) {
        __stcs(residual + row * vectors + i, held[k]);
        __stcs(y + row * vectors + i, scaled(held[k], weight[k], scale));
      }
  }
}

/// One row by a cluster; a block holds an eighth of it.
template <int kVectors>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kClusterThreads)
    add_rmsnorm_shared_row(const uint4* __restrict__ x, uint4* __restrict__ residual,
                           const uint4* __restrict__ w, uint4* __restrict__ y, float eps, int vectors) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  __shared__ float partial[32], sums[kCluster];
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");  // my shared memory is there
  cg::cluster_group cluster = cg::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank());
  const int64_t start = static_cast<int64_t>(blockIdx.x / kCluster) * vectors;
  const int first = rank * kVectors * kClusterThreads + static_cast<int>(threadIdx.x);
  uint4 held[kVectors], other[kVectors], weight[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = first + k * kClusterThreads;
    held[k] = i < vectors ? __ldcs(residual + start + i) : make_uint4(0, 0, 0, 0);
    other[k] = i < vectors ? __ldcs(x + start + i) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (const int i = first + k * kClusterThreads; i < vectors) weight[k] = w[i];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = first + k * kClusterThreads;
    held[k] = added(held[k], other[k]);
    if (i < vectors) __stcs(residual + start + i, held[k]);
    sum += squares(held[k]);
  }
  sum = block_sum(sum, partial);
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");  // all blocks have begun
  if (threadIdx.x < kCluster) *cluster.map_shared_rank(&sums[rank], threadIdx.x) = sum;
  cluster.sync();  // all sums have come
  sum = 0;
#pragma unroll
  for (int b = 0; b < kCluster; ++b) sum += sums[b];
  const float scale = rsqrtf(sum / static_cast<float>(8 * vectors) + eps);
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (const int i = first + k * kClusterThreads; i < vectors)
      __stcs(y + start + i, scaled(held[k], weight[k], scale));
#endif
}

/// Any cols: element by element, as in rung 1.
__global__ void add_rmsnorm_ragged(const __nv_bfloat16* x, __nv_bfloat16* residual, const __nv_bfloat16* w,
                                   __nv_bfloat16* y, float eps, int64_t cols) {
  __shared__ float partial[32];
  const int64_t start = blockIdx.x * cols;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const __nv_bfloat16 v =
        __float2bfloat16(__bfloat162float(residual[start + i]) + __bfloat162float(x[start + i]));
    residual[start + i] = v;
    sum += __bfloat162float(v) * __bfloat162float(v);
  }
  const float scale = rsqrtf(block_sum(sum, partial) / static_cast<float>(cols) + eps);
  for (int64_t i = threadIdx.x; i < cols; i += kThreads)
    y[start + i] = __float2bfloat16(__bfloat162float(residual[start + i]) * scale * __bfloat162float(w[i]));
}

/// As many blocks as run at once, but none that would have one row less than others.
template <class Kernel>
unsigned blocks_that_stay(Kernel kernel, int64_t rows, int multiprocessors) {
  int resident = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, 0);
  const int64_t most = int64_t{resident} * multiprocessors, rounds = (rows + most - 1) / most;
  return static_cast<unsigned>((rows + rounds - 1) / rounds);
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, __nv_bfloat16* residual /*[rows,cols]*/,
                       const __nv_bfloat16* w /*[cols]*/, __nv_bfloat16* y /*[rows,cols]*/, float eps,
                       int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  if (cols % 8 != 0 || cols > kMostColumns) {
    add_rmsnorm_ragged<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, residual, w, y, eps, cols);
    return;
  }
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int vectors = static_cast<int>(cols / 8);
  const auto* from = reinterpret_cast<const uint4*>(x);
  const auto* weight = reinterpret_cast<const uint4*>(w);
  auto* stream_of_sums = reinterpret_cast<uint4*>(residual);
  auto* to = reinterpret_cast<uint4*>(y);
  if (rows < multiprocessors) {
    const auto kernel =
        vectors <= kCluster * kClusterThreads ? add_rmsnorm_shared_row<1> : add_rmsnorm_shared_row<2>;
    kernel<<<static_cast<unsigned>(rows * kCluster), kClusterThreads, 0, stream>>>(from, stream_of_sums,
                                                                                   weight, to, eps, vectors);
    return;
  }
  const auto kernel = vectors <= kThreads       ? add_rmsnorm_rows<1>
                      : vectors <= 2 * kThreads ? add_rmsnorm_rows<2>
                                                : add_rmsnorm_rows<4>;
  kernel<<<blocks_that_stay(kernel, rows, multiprocessors), kThreads, 0, stream>>>(
      from, stream_of_sums, weight, to, eps, rows, vectors);
}
