// Rung 2: one kernel. The norm is folded into the product: a row's scale is multiplied in at the end.
//
// Changed     y[i, j] = r_i * sum_c (x[i, c] g[c]) w[j, c], where r_i is 1 / rms of row i: r_i waits until
//             the end, so nothing waits for it. A block keeps its part of x * g in shared memory, adds up
//             its squares on the way, and streams weights through registers into tensor cores. The weights
//             are the operand with 16 rows, x the one with 8 columns. Two blocks of a cluster share k; their
//             sums meet at the end.
// Why         rung 1 waits for the norm before it reads a weight, and reads weights 64 bytes at a time. At
//             16 rows the product is a stream of 168 MB of weights; what counts is that loads never stop. A
//             thread has kAhead pairs of 16 bytes on their way: 64 KB a multiprocessor, where 30 KB are
//             needed.
// Prediction  90 % of the reads' bandwidth: 42 us; cuBLAS alone takes 45, and the norm in front 5.
// Came        72.6 us on an H100, 2321 GB/s, 7.06 times the rung before. 100 % of the native baseline.
//
// Shapes      x [m, k], g [k], w [n, k], y [m, n], bf16, row-major.
// Launch      <<<(blocks, ceil(m / 16)), 512>>>: clusters of 2 blocks; a cluster takes every so-many-th 16
//             rows of w.
// Resources   at most 128 registers; at 8192 columns 175 KB of shared memory, one block a multiprocessor.
// Cost        2 * m * n * k FLOPs; 2 * n * k bytes for each 16 rows of x.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so), k <= 8192; a deeper k takes the kernels of
//             rung 1.
// Source      row scales commute with a product. Any order of k serves a sum, so a thread's 16 bytes of a
//             row are what two products of depth 16 need of it (Marlin shuffles weights for that; here x
//             follows suit).
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cg = cooperative_groups;

constexpr int kWarps = 16, kThreads = 32 * kWarps;
constexpr int kCluster = 2;       // blocks that share k
constexpr int kRows = 16;         // of w in a tile, and of x in a slab
constexpr int kChunk = 32;        // columns that a warp multiplies at a time: 16 bytes of each row a thread
constexpr int kAhead = 4;         // chunks of a thread on their way
constexpr int kMostTiles = 10;    // of a block
constexpr int kMostShare = 4096;  // columns of a block
constexpr int kBatch = 8;         // vectors of x that a lane asks for at a time
constexpr int kPad = 32;          // columns: rows of x then begin 64 bytes further in the banks
constexpr int kMostBytesOfX = kRows * (kMostShare + 3 * kPad) * 2;

// ---- numbers ----------------------------------------------------------------------------------------------
/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ unsigned product(unsigned a, unsigned b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low(a) * low(b), high(a) * high(b));
  return reinterpret_cast<const unsigned&>(both);
}
__device__ float squares(unsigned word) { return low(word) * low(word) + high(word) * high(word); }

/// d += a b: a has 16 rows and 16 columns, b has 8 columns.
__device__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                         unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// Where a block's columns lie.
struct Share {
  int first, count, pitch;  // columns; `pitch` of a row of x in shared memory
};
__host__ __device__ Share share_of(int64_t k, int rank) {
  const int chunks = static_cast<int>((k + kChunk - 1) / kChunk), own = (chunks + kCluster - 1) / kCluster;
  const int first = rank * own * kChunk, left = static_cast<int>(k) - first;
  return {first,
          left < 0              ? 0
          : left < own * kChunk ? left
                                : own * kChunk,
          own * kChunk / (2 * kPad) * (2 * kPad) + 2 * kPad + kPad};
}

/// x * g of this block's columns to shared memory, zeros behind the end, and the sums of their squares. A
/// warp takes a row; a lane asks for kBatch vectors before it uses one.
__device__ void prepare(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ g, int64_t k,
                        int rows, const Share& share, __nv_bfloat16* xg, float* squares_of) {
  const int lane = threadIdx.x % 32;
  const int vectors = (share.count + kChunk - 1) / kChunk * kChunk / 8;  // with zeros to a whole chunk
  for (int row = threadIdx.x / 32; row < kRows; row += kWarps) {
    float sum = 0;
    for (int first = lane; first < vectors; first += 32 * kBatch) {
      uint4 v[kBatch], factor[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int c = (first + 32 * i) * 8;
        const bool there = row < rows && c < share.count;
        v[i] =
            there ? *reinterpret_cast<const uint4*>(x + row * k + share.first + c) : make_uint4(0, 0, 0, 0);
        factor[i] = there ? *reinterpret_cast<const uint4*>(g + share.first + c) : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        sum += squares(v[i].x) + squares(v[i].y) + squares(v[i].z) + squares(v[i].w);
        if (first + 32 * i < vectors)
          *reinterpret_cast<uint4*>(xg + row * share.pitch + (first + 32 * i) * 8) =
              make_uint4(product(v[i].x, factor[i].x), product(v[i].y, factor[i].y),
                         product(v[i].z, factor[i].z), product(v[i].w, factor[i].w));
      }
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) squares_of[row] = sum;
  }
}

/// kHalves: eights of x's rows.
template <int kHalves>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    rmsnorm_qkv(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ g,
                const __nv_bfloat16* __restrict__ w, __nv_bfloat16* __restrict__ y, float eps, int64_t m,
                int64_t k, int64_t n) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kResults = kRows * 8 * kHalves;  // of a tile
  extern __shared__ uint4 shared[];
  __shared__ float partial[2][kWarps][kResults], sums[kMostTiles][kResults], squares_of[kRows];
  auto* const xg = reinterpret_cast<__nv_bfloat16*>(shared);
  cg::cluster_group cluster = cg::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank());
  const Share share = share_of(k, rank);
  const int64_t clusters = gridDim.x / kCluster, first_tile = blockIdx.x / kCluster,
                tiles = (n + kRows - 1) / kRows;
  const int64_t slab = static_cast<int64_t>(blockIdx.y) * kRows;
  const int rows = static_cast<int>(m - slab < kRows ? m - slab : kRows);
  const int own_tiles = static_cast<int>((tiles - first_tile + clusters - 1) / clusters);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 8;
  // A warp's chunks of a tile are kWarps apart; a multiple of kAhead of them, some behind the end.
  const int steps = (share.count + kChunk * kWarps * kAhead - 1) / (kChunk * kWarps * kAhead) * kAhead;

  // The chunk of step `step`, counted over all tiles: 16 bytes of rows `row` and `row` + 8 of w.
  const auto fetch = [&](int tile, int step, uint4(&to)[2]) {
    const int c = (warp + step * kWarps) * kChunk + column;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t of_w = (first_tile + tile * clusters) * kRows + row + 8 * half;
      to[half] = make_uint4(0, 0, 0, 0);
      if (tile < own_tiles && c < share.count && of_w < n)
        to[half] = __ldcs(reinterpret_cast<const uint4*>(w + of_w * k + share.first + c));
    }
  };
  uint4 ahead[kAhead][2];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) fetch(0, i, ahead[i]);
  prepare(x + slab * k, g, k, rows, share, xg, squares_of);
  __syncthreads();

  for (int tile = 0; tile < own_tiles; ++tile) {
    float d[kHalves][4] = {};
    for (int step = 0; step < steps; step += kAhead)
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int c = (warp + (step + i) * kWarps) * kChunk + column;
        const uint4 above = ahead[i][0], below = ahead[i][1];
        const bool last = step + kAhead >= steps;
        fetch(last ? tile + 1 : tile, last ? i : step + kAhead + i, ahead[i]);
        if (c - column >= share.count) continue;  // the whole warp: no such columns
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
          const uint4 b = *reinterpret_cast<const uint4*>(xg + (row + 8 * half) * share.pitch + c);
          multiply(d[half], above.x, below.x, above.y, below.y, b.x, b.y);
          multiply(d[half], above.z, below.z, above.w, below.w, b.z, b.w);
        }
      }
    float* const own = partial[tile % 2][warp];  // [row of w][row of x]
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      const int at = half * 8 + lane % 4 * 2;
      own[row * 8 * kHalves + at] = d[half][0], own[row * 8 * kHalves + at + 1] = d[half][1];
      own[(row + 8) * 8 * kHalves + at] = d[half][2], own[(row + 8) * 8 * kHalves + at + 1] = d[half][3];
    }
    __syncthreads();  // all warps' sums; those of the tile before have been used
    for (int i = threadIdx.x; i < kResults; i += kThreads) {
      float sum = 0;
      for (int other = 0; other < kWarps; ++other) sum += partial[tile % 2][other][i];
      sums[tile][i] = sum;
    }
  }

  cluster.sync();  // the sums of all blocks are complete
  for (int tile = rank; tile < own_tiles; tile += kCluster)
    for (int i = threadIdx.x; i < kResults; i += kThreads) {
      const int of_w = i % kRows, of_x = i / kRows;  // neighbours write neighbours
      const int64_t j = (first_tile + tile * clusters) * kRows + of_w;
      float sum = 0, square = 0;
      for (int b = 0; b < kCluster; ++b) {
        sum += cluster.map_shared_rank(sums[tile], b)[of_w * 8 * kHalves + of_x];
        square += cluster.map_shared_rank(squares_of, b)[of_x];
      }
      if (of_x < rows && j < n)
        y[(slab + of_x) * n + j] = __float2bfloat16(sum * rsqrtf(square / static_cast<float>(k) + eps));
    }
  cluster.sync();  // nobody leaves while another block reads its sums
#endif
}

// ---- a deeper k: rung 1 -----------------------------------------------------------------------------------
__global__ void normalise(const __nv_bfloat16* x, const __nv_bfloat16* g, __nv_bfloat16* normed, float eps,
                          int64_t k) {
  __shared__ float partial[kWarps];
  const int64_t start = blockIdx.x * k;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < k; i += kThreads)
    sum += __bfloat162float(x[start + i]) * __bfloat162float(x[start + i]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += partial[warp];
  const float scale = rsqrtf(sum / static_cast<float>(k) + eps);
  for (int64_t i = threadIdx.x; i < k; i += kThreads)
    normed[start + i] = __float2bfloat16(__bfloat162float(x[start + i]) * scale * __bfloat162float(g[i]));
}
/// A warp for each result.
__global__ void dot_products(const __nv_bfloat16* a, const __nv_bfloat16* w, __nv_bfloat16* y, int64_t k,
                             int64_t n) {
  const int64_t row = blockIdx.y, column = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (column >= n) return;
  float sum = 0;
  for (int64_t i = threadIdx.x % 32; i < k; i += 32)
    sum += __bfloat162float(a[row * k + i]) * __bfloat162float(w[column * k + i]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) y[row * n + column] = __float2bfloat16(sum);
}

bool fits(int64_t k) { return share_of(k, 0).count <= kMostShare; }
extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t /*n*/) {
  return fits(k) ? 0 : static_cast<size_t>(m * k) * sizeof(__nv_bfloat16);
}

extern "C" void launch(const __nv_bfloat16* x /*[m,k]*/, const __nv_bfloat16* g /*[k]*/,
                       const __nv_bfloat16* w /*[n,k]*/, __nv_bfloat16* y /*[m,n]*/, float eps, int64_t m,
                       int64_t k, int64_t n, void* workspace, cudaStream_t stream) {
  if (!fits(k)) {
    auto* const normed = static_cast<__nv_bfloat16*>(workspace);
    normalise<<<static_cast<unsigned>(m), kThreads, 0, stream>>>(x, g, normed, eps, k);
    dot_products<<<dim3(static_cast<unsigned>((n + kWarps - 1) / kWarps), static_cast<unsigned>(m)), kThreads,
                   0, stream>>>(normed, w, y, k, n);
    return;
  }
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int shared_bytes = kRows * share_of(k, 0).pitch * static_cast<int>(sizeof(__nv_bfloat16));
  const auto kernel = m <= 8 ? rmsnorm_qkv<1> : rmsnorm_qkv<2>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostBytesOfX);
  // Clusters that run at once, as many tiles for each: 640 tiles are 10 for each of 64 clusters, not 9 or 10
  // for 66.
  const int64_t tiles = (n + kRows - 1) / kRows, most = multiprocessors / kCluster;
  const int64_t for_each = std::min<int64_t>((tiles + most - 1) / most, kMostTiles),
                clusters = (tiles + for_each - 1) / for_each;
  const dim3 grid(static_cast<unsigned>(clusters * kCluster), static_cast<unsigned>((m + kRows - 1) / kRows));
  kernel<<<grid, kThreads, static_cast<size_t>(shared_bytes), stream>>>(x, g, w, y, eps, m, k, n);
}
