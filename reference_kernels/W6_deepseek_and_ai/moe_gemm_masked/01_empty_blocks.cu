// Rung 1: a grid for the most rows that a group can have; blocks without rows write zeros.
//
// Changed     -
// Why         how many rows a group has is known only on the device, and a captured graph has a fixed
//             grid. A block that finds its first row at or beyond masked_m has nothing to multiply.
// Prediction  128 rows a group on average, 1 GB of weights: each is read twice where a group has more than
//             128 rows. 150 TFLOP/s as in moe_gemm_contiguous, for tiles that are three quarters full: 2.1
//             ms.
// Came        2.09 ms on an H100, 497 GB/s. 100 % of the native baseline.
//
// Shapes      a [groups, max_m, k], b [groups, n, k], e4m3; sfa [groups, max_m, ceil(k/128)], sfb [groups,
//             ceil(n/128), ceil(k/128)], fp32; masked_m [groups], i32; c [groups, max_m, n], bf16.
// Launch      a block of 256 threads for each tile of 128 x 128 that could have rows; a warp computes 64 x
//             32.
// Resources   64 sums, 16 parts and as many words of operands a thread; 36 KB of shared memory.
// Cost        2 n k FLOPs for each row; n k / 64 bytes of global loads for each.
// Divides     k % 16 == 0 and n % 8 == 0 (the problem says so); what lies outside counts as zero.
// Source      grouped products in masked layout, as in DeepGEMM (2025). Needs sm_89.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

using bf16 = __nv_bfloat16;
using e4m3 = __nv_fp8_e4m3;

constexpr int kTile = 128, kDepth = 128, kThreads = 256, kWarpM = 64, kWarpN = 32;
constexpr int kPitch = kDepth + 16;  // [B] 36 words: the eight rows that a warp reads at once meet all banks

/// Rows `first` … of a matrix, bytes `depth` … of each; zeros outside.
__device__ void fetch(uint8_t* tile, const e4m3* matrix, int64_t first, int64_t rows, int64_t depth, int64_t k) {
  for (int i = threadIdx.x; i < kTile * kDepth / 16; i += kThreads) {
    const int row = i / (kDepth / 16), piece = i % (kDepth / 16) * 16;
    uint4 value = {};
    if (first + row < rows && depth + piece < k)
      value = *reinterpret_cast<const uint4*>(matrix + (first + row) * k + depth + piece);
    *reinterpret_cast<uint4*>(tile + row * kPitch + piece) = value;
  }
}

/// d += a * b: 16 x 8 results, 32 deep, by one warp.
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void __launch_bounds__(kThreads) gemm(const e4m3* __restrict__ a, const float* __restrict__ sfa, const e4m3* __restrict__ b,
                                                 const float* __restrict__ sfb, const int* __restrict__ masked_m,
                                                 bf16* __restrict__ c, int64_t max_m, int64_t k, int64_t n) {
  __shared__ __align__(16) uint8_t a_tile[kTile * kPitch], b_tile[kTile * kPitch];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile, column = static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t group = blockIdx.z, m = masked_m[group], blocks = (k + kDepth - 1) / kDepth;
  a += group * max_m * k, sfa += group * max_m * blocks, c += group * max_m * n;
  if (row >= m) {  // no row of the tile is used
    const int64_t rows = min(max_m - row, int64_t{kTile}), width = min(n - column, int64_t{kTile}) / 8;  // of 16 bytes
    for (int64_t i = threadIdx.x; i < rows * width; i += kThreads)
      *reinterpret_cast<uint4*>(c + (row + i / width) * n + column + i % width * 8) = uint4{};
    return;
  }
  b += group * n * k, sfb += group * gridDim.x * blocks;  // a tile of columns has one row of scales
  const int warp = threadIdx.x / 32, near = threadIdx.x % 4, far = threadIdx.x % 32 / 4;  // far: of eight rows, near: of four words
  const int my_row = warp % 2 * kWarpM, my_column = warp / 2 * kWarpN;                    // in the tile
  const auto word = [&](const uint8_t* tile, int at, int depth) {
    return *reinterpret_cast<const uint32_t*>(tile + at * kPitch + depth + near * 4);
  };

  float sum[kWarpM / 16][kWarpN / 8][4] = {};
  for (int64_t block = 0; block < blocks; ++block) {
    fetch(a_tile, a, row, m, block * kDepth, k);
    fetch(b_tile, b, column, n, block * kDepth, k);
    __syncthreads();
    const float b_scale = sfb[blockIdx.x * blocks + block];  // a tile of 128 columns has one
#pragma unroll
    for (int i = 0; i < kWarpM / 16; ++i) {
      float part[kWarpN / 8][4] = {};
#pragma unroll 1
      for (int depth = 0; depth < kDepth; depth += 32) {
        const int at = my_row + i * 16 + far;
        const uint32_t left[4] = {word(a_tile, at, depth), word(a_tile, at + 8, depth), word(a_tile, at, depth + 16),
                                  word(a_tile, at + 8, depth + 16)};
#pragma unroll
        for (int j = 0; j < kWarpN / 8; ++j) {
          const uint32_t right[2] = {word(b_tile, my_column + j * 8 + far, depth), word(b_tile, my_column + j * 8 + far, depth + 16)};
          multiply(part[j], left, right);
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // promotion: a lane holds pairs in two rows
        const int64_t at = row + my_row + i * 16 + half * 8 + far;
        const float scale = at < m ? sfa[at * blocks + block] * b_scale : 0;
#pragma unroll
        for (int j = 0; j < kWarpN / 8; ++j)
          for (int e = 0; e < 2; ++e) sum[i][j][half * 2 + e] += part[j][half * 2 + e] * scale;
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kWarpM / 16; ++i)
#pragma unroll
    for (int j = 0; j < kWarpN / 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t at = row + my_row + i * 16 + half * 8 + far, to = column + my_column + j * 8 + near * 2;
        if (at < max_m && to < n)  // beyond m: zero, as the tile of a
          *reinterpret_cast<__nv_bfloat162*>(c + at * n + to) = __floats2bfloat162_rn(sum[i][j][half * 2], sum[i][j][half * 2 + 1]);
      }
}

extern "C" void launch(const e4m3* a /*[groups,max_m,k]*/, const float* sfa /*[groups,max_m,ceil_div(k, 128)]*/,
                       const e4m3* b /*[groups,n,k]*/, const float* sfb /*[groups,ceil_div(n, 128),ceil_div(k, 128)]*/,
                       const int* masked_m /*[groups]*/, bf16* c /*[groups,max_m,n]*/, int64_t groups, int64_t max_m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>((max_m + kTile - 1) / kTile),
                  static_cast<unsigned>(groups));
  gemm<<<grid, kThreads, 0, stream>>>(a, sfa, b, sfb, masked_m, c, max_m, k, n);
}
