// C = A * B in fp32 at the speed of bf16: every float is split into bf16 parts, and the products that matter go through the tensor cores.
// Found on the net and made to fit this launch(). kParts is 3 there; with 2 it is faster.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes.
// Launch      two kernels that split a and b into padded planes in the workspace, then one block of 256 threads a tile of 128 x 128.
// Resources   up to 255 registers: one block a multiprocessor; 128 KB of shared memory.
// Cost        6 m n k FLOPs in bf16 for 2 m n k in fp32; 8 bytes an element of a and b for splitting.
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kTile = 128, kDepth = 32, kStages = 4, kThreads = 256;
constexpr int kParts = 2;                                                    // hi, lo     
constexpr int kWarpM = 64, kWarpN = 32, kM = kWarpM / 16, kN = kWarpN / 8;   // a warp's share: kM x kN results of mma.sync
constexpr int kTileElements = kTile * kDepth;                                // of one part of one operand
constexpr int kStageElements = 2 * kParts * kTileElements;
constexpr int kSharedBytes = kStages * kStageElements * 2;
constexpr int kBand = 8;                                                     // tile rows
constexpr int kPerThread = 4;                                                // elements that a thread splits

constexpr int64_t padded(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

/// x [rows, columns] → planes [kParts, padded_rows, padded_columns]; what is beyond x becomes 0.
__global__ void split(const float* __restrict__ x, bf16* __restrict__ planes, int64_t rows, int64_t columns, int64_t padded_rows,
                      int64_t padded_columns) {
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kPerThread, row = blockIdx.y;
  if (column >= padded_columns) return;
  float rest[kPerThread];
  if (row < rows && column + kPerThread <= columns && columns % kPerThread == 0) {
    const float4 v = *reinterpret_cast<const float4*>(x + row * columns + column);
    rest[0] = v.x, rest[1] = v.y, rest[2] = v.z, rest[3] = v.w;
  } else {
    for (int i = 0; i < kPerThread; ++i) rest[i] = row < rows && column + i < columns ? x[row * columns + column + i] : 0.0f;
  }
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    __align__(8) bf16 rounded[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      rounded[i] = __float2bfloat16_rn(rest[i]);
      rest[i] -= __bfloat162float(rounded[i]);  // exact
    }
    *reinterpret_cast<uint2*>(planes + (part * padded_rows + row) * padded_columns + column) = *reinterpret_cast<const uint2*>(rounded);
  }
}

/// Where 16-byte piece `piece` of a row lies in a tile with kPieces a row: eight neighbouring rows at one piece meet all 32 banks.
template <int kPieces>
__device__ int swizzled(int row, int piece) {
  constexpr int kRowsPerLine = kPieces >= 8 ? 1 : 8 / kPieces, kMask = (kPieces >= 8 ? 8 : kPieces) - 1;
  return (row * kPieces + (piece ^ (row / kRowsPerLine & kMask))) * 8;
}

/// Four 8 x 8 matrices; lanes 0–7 give the rows of the first, 8–15 of the second, and so on.
__device__ void load_matrices(uint32_t (&to)[4], const bf16* row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}
__device__ void load_matrices_transposed(uint32_t (&to)[4], const bf16* row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}

/// c += a * b for 16 x 8 results, 16 deep.
__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// a [kParts, padded_m, padded_k], b [kParts, padded_k, padded_n], as split() makes them; c [m, n].
__global__ void __launch_bounds__(kThreads, 1)
    gemm(const bf16* __restrict__ a, const bf16* __restrict__ b, float* __restrict__ c, int m, int n, int padded_m, int padded_k,
         int padded_n) {
  extern __shared__ uint4 shared[];
  const auto a_tile = [&](int stage, int part) { return reinterpret_cast<bf16*>(shared) + stage * kStageElements + part * kTileElements; };
  const auto b_tile = [&](int stage, int part) { return a_tile(stage, kParts + part); };

  // Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may be lower.
  const int tile_rows = padded_m / kTile, tile_columns = padded_n / kTile;
  const int band = blockIdx.x / (kBand * tile_columns), within = blockIdx.x % (kBand * tile_columns);
  const int height = tile_rows - band * kBand < kBand ? tile_rows - band * kBand : kBand;
  const int row0 = (band * kBand + within % height) * kTile, column0 = within / height * kTile;

  constexpr int kPiecesA = kDepth / 8, kPiecesB = kTile / 8;  // of 16 bytes, a row of a tile
  int next_depth = 0;
  const auto fetch = [&](int stage) {  // a group of copies for each tile, also for those behind the end
    if (next_depth < padded_k) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const bf16* const a_from = a + (static_cast<int64_t>(part) * padded_m + row0) * padded_k + next_depth;
        const bf16* const b_from = b + (static_cast<int64_t>(part) * padded_k + next_depth) * padded_n + column0;
#pragma unroll
        for (int i = threadIdx.x; i < kTileElements / 8; i += kThreads) {
          const int a_row = i / kPiecesA, a_piece = i % kPiecesA, b_row = i / kPiecesB, b_piece = i % kPiecesB;
          __pipeline_memcpy_async(a_tile(stage, part) + swizzled<kPiecesA>(a_row, a_piece),
                                  a_from + static_cast<int64_t>(a_row) * padded_k + a_piece * 8, 16);
          __pipeline_memcpy_async(b_tile(stage, part) + swizzled<kPiecesB>(b_row, b_piece),
                                  b_from + static_cast<int64_t>(b_row) * padded_n + b_piece * 8, 16);
        }
      }
      next_depth += kDepth;
    }
    __pipeline_commit();
  };

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (kTile / kWarpN) * kWarpM, warp_column = warp % (kTile / kWarpN) * kWarpN;
  const auto next = [](int stage) { return stage + 1 < kStages ? stage + 1 : 0; };
  float sum[kM][kN][4] = {};

#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) fetch(stage);
  int present = 0, free = kStages - 1;
  for (int depth = 0; depth < padded_k; depth += kDepth, present = next(present), free = next(free)) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();  // the tile has come for all threads, and all have done with the one before
    fetch(free);

    // Tensor cores cut off what they add instead of rounding it: a tile's sum starts at 0 and is then added by the FMA pipes.
    float tile_sum[kM][kN][4] = {};
#pragma unroll
    for (int step = 0; step < kDepth / 16; ++step) {
      uint32_t left[kParts][kM][4], right[kParts][kN / 2][4];  // right[…][j]: two columns of 8, two depths of 8 each
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int i = 0; i < kM; ++i)
          load_matrices(left[part][i], a_tile(present, part) + swizzled<kPiecesA>(warp_row + i * 16 + lane % 16, step * 2 + lane / 16));
#pragma unroll
        for (int j = 0; j < kN / 2; ++j)
          load_matrices_transposed(right[part][j], b_tile(present, part) + swizzled<kPiecesB>(step * 16 + lane % 16,
                                                                                           warp_column / 8 + j * 2 + lane / 16));
      }
      // Parts p and q together are 2^-8(p + q) of the product: p + q > kParts - 1 are left out. Smallest first.
#pragma unroll
      for (int order = kParts - 1; order >= 0; --order)
#pragma unroll
        for (int p = 0; p <= order; ++p)
#pragma unroll
          for (int i = 0; i < kM; ++i)
#pragma unroll
            for (int j = 0; j < kN; ++j)
              multiply(tile_sum[i][j], left[p][i], right[order - p][j / 2][j % 2 * 2], right[order - p][j / 2][j % 2 * 2 + 1]);
    }
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r) sum[i][j][r] += tile_sum[i][j][r];
  }

  // A lane holds two neighbours in row lane / 4 and two in the row 8 below.
#pragma unroll
  for (int i = 0; i < kM; ++i)
#pragma unroll
    for (int j = 0; j < kN; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = row0 + warp_row + i * 16 + r / 2 * 8 + lane / 4, column = column0 + warp_column + j * 8 + lane % 4 * 2 + r % 2;
        if (row < m && column < n) c[static_cast<int64_t>(row) * n + column] = sum[i][j][r];
      }
}

extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t n) {
  return static_cast<size_t>(kParts * padded(k, kDepth) * (padded(m, kTile) + padded(n, kTile)) * 2);
}

void launch_split(const float* x, bf16* planes, int64_t rows, int64_t columns, int64_t padded_rows, int64_t padded_columns,
                  cudaStream_t stream) {
  const int64_t threads = padded_columns / kPerThread;
  const dim3 grid(static_cast<unsigned>((threads + kThreads - 1) / kThreads), static_cast<unsigned>(padded_rows));
  split<<<grid, kThreads, 0, stream>>>(x, planes, rows, columns, padded_rows, padded_columns);
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  const int64_t padded_m = padded(m, kTile), padded_k = padded(k, kDepth), padded_n = padded(n, kTile);
  bf16* const a_planes = static_cast<bf16*>(workspace);
  bf16* const b_planes = a_planes + kParts * padded_m * padded_k;
  launch_split(a, a_planes, m, k, padded_m, padded_k, stream);
  launch_split(b, b_planes, k, n, padded_k, padded_n, stream);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  gemm<<<static_cast<unsigned>(padded_m / kTile * (padded_n / kTile)), kThreads, kSharedBytes, stream>>>(
      a_planes, b_planes, c, static_cast<int>(m), static_cast<int>(n), static_cast<int>(padded_m), static_cast<int>(padded_k),
      static_cast<int>(padded_n));
}
