// Rung 3: swizzled stages of cp.async, and fragments one step ahead.
//
// Changed     tiles come by `cp.async` into a ring of stages, three of them in flight while one is
//             multiplied. The tile is 128 x 256, a warp computes 64 x 64 of it. Instead of padding, 16-byte
//             piece p of row r lies at p ^ (r % 8). Within a tile the fragments of the next 16 of k are
//             loaded before the current ones are multiplied. Tiles of C are taken in bands, so that blocks
//             that run together share rows of A and columns of B in L2.
// Why         in rung 2 loading and multiplying take turns; here memory, `ldmatrix` and the tensor cores work
//             at the same time. 8 `ldmatrix` feed 32 `mma.sync`: a quarter fewer a product, and the tile asks
//             L2 for a quarter less.
// Prediction  the tensor cores' own rate for mma.sync on Hopper, about 60 % of WGMMA's: 2x rung 2; 55 to 65 %
//             of cuBLAS, 400 TFLOP/s or more at 8192 cubed on an H100.
// Came        2.37 ms on an H100, 463.18 TFLOP/s, 4.24 times the rung before. 56 % of the native baseline.
//
// Shapes      a [m, k], b [k, n], c [m, n], bf16, row-major.
// Launch      one block of 256 threads a tile in one dimension, in bands of kBand tile rows.
// Resources   up to 255 registers, 128 of them sums: one block per multiprocessor; 48 KB of shared memory per
//             stage.
// Cost        2 m n k FLOPs; 3 m n k / 128 bytes of global loads.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so): 16-byte copies; m anything, copies beyond an
//             edge write zeros.
// Source      the multistage pipeline of CUTLASS 2.x (NVIDIA, 2020); the swizzle as in its ldmatrix layouts.
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

using bf16 = __nv_bfloat16;

/// Sizes of one variant: tile of a block, depth, tile of a warp, stages.
template <int kTileM_, int kTileN_, int kDepth_, int kWarpM_, int kWarpN_, int kStages_>
struct Shape {
  static constexpr int kTileM = kTileM_, kTileN = kTileN_, kDepth = kDepth_, kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kStages = kStages_;
  static constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
  static constexpr int kStageElements = (kTileM + kTileN) * kDepth;
  static constexpr int kSharedBytes = kStages * kStageElements * 2;
};
using Tuned = Shape<128, 256, 64, 64, 64, 4>;

constexpr int kBand = 8;  // tile rows

/// Where 16-byte piece `piece` of a row lies in a tile with kPieces a row: eight neighbouring rows at one
/// piece meet all 32 banks, whether a row is shorter than a line of 128 bytes or longer.
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
  asm(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// The copies of one thread into one operand's tile: a piece of every kStep-th row. Pieces beyond the matrix
/// become zeros.
template <int kRows, int kColumns, int kThreads>
struct Copier {
  static constexpr int kPieces = kColumns / 8, kStep = kThreads / kPieces;
  static_assert(kThreads % kPieces == 0 && kRows % kStep == 0, "equal shares for all threads");
  const bf16 *matrix, *from;  // this thread's first piece of the next tile
  int64_t stride;
  int row, piece;

  __device__ Copier(const bf16* matrix_, int64_t row0, int64_t column0, int64_t stride_)
      : matrix(matrix_), stride(stride_), row(threadIdx.x / kPieces), piece(threadIdx.x % kPieces) {
    from = matrix + (row0 + row) * stride + column0 + piece * 8;
  }
  /// Starts the copies of a tile of which `rows_left` rows and `columns_left` columns exist.
  __device__ void fetch(bf16* tile, int rows_left, int columns_left) const {
#pragma unroll
    for (int i = 0; i < kRows; i += kStep) {
      const bool exists = row + i < rows_left && piece * 8 < columns_left;
      __pipeline_memcpy_async(tile + swizzled<kPieces>(row + i, piece), exists ? from + i * stride : matrix, 16, exists ? 0 : 16);
    }
  }
};

template <class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    gemm(const bf16* __restrict__ a, const bf16* __restrict__ b, bf16* __restrict__ c, int m, int k, int n) {
  constexpr int kM = S::kWarpM / 16, kN = S::kWarpN / 8, kSteps = S::kDepth / 16;
  static_assert(kSteps % 2 == 0, "a tile begins with the first of the two sets of fragments");
  constexpr int kPiecesA = S::kDepth / 8, kPiecesB = S::kTileN / 8;
  extern __shared__ uint4 shared[];
  const auto a_tile = [&](int stage) { return reinterpret_cast<bf16*>(shared) + stage * S::kStageElements; };
  const auto b_tile = [&](int stage) { return a_tile(stage) + S::kTileM * S::kDepth; };

  // Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may
  // be lower.
  const int tile_rows = (m + S::kTileM - 1) / S::kTileM, tile_columns = (n + S::kTileN - 1) / S::kTileN;
  const int band = blockIdx.x / (kBand * tile_columns), within = blockIdx.x % (kBand * tile_columns);
  const int height = tile_rows - band * kBand < kBand ? tile_rows - band * kBand : kBand;
  const int row0 = (band * kBand + within % height) * S::kTileM, column0 = within / height * S::kTileN;

  Copier<S::kTileM, S::kDepth, S::kThreads> copy_a(a, row0, 0, k);
  Copier<S::kDepth, S::kTileN, S::kThreads> copy_b(b, 0, column0, n);
  int depth_left = k;
  const auto fetch = [&](int stage) {  // a group of copies for each tile, also for those behind the end
    if (depth_left > 0) {
      copy_a.fetch(a_tile(stage), m - row0, depth_left);
      copy_b.fetch(b_tile(stage), depth_left, n - column0);
      copy_a.from += S::kDepth, copy_b.from += static_cast<int64_t>(S::kDepth) * n, depth_left -= S::kDepth;
    }
    __pipeline_commit();
  };

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (S::kTileN / S::kWarpN) * S::kWarpM, warp_column = warp % (S::kTileN / S::kWarpN) * S::kWarpN;
  uint32_t left[2][kM][4], right[2][kN / 2][4];  // of two steps; right[…][j]: two columns of 8, two depths of 8 each
  const auto load_fragments = [&](int slot, int stage, int step) {
#pragma unroll
    for (int i = 0; i < kM; ++i)
      load_matrices(left[slot][i], a_tile(stage) + swizzled<kPiecesA>(warp_row + i * 16 + lane % 16, step * 2 + lane / 16));
#pragma unroll
    for (int j = 0; j < kN / 2; ++j)
      load_matrices_transposed(right[slot][j], b_tile(stage) + swizzled<kPiecesB>(step * 16 + lane % 16,
                                                                                  warp_column / 8 + j * 2 + lane / 16));
  };

  float sum[kM][kN][4] = {};
  const auto next = [](int stage) { return stage + 1 < S::kStages ? stage + 1 : 0; };
#pragma unroll
  for (int stage = 0; stage < S::kStages - 1; ++stage) fetch(stage);
  __pipeline_wait_prior(S::kStages - 2);
  __syncthreads();  // the first tile has come for all threads
  load_fragments(0, 0, 0);

  int present = 0, free = S::kStages - 1;
  for (int depth = 0; depth < k; depth += S::kDepth, present = next(present), free = next(free)) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step == 0) fetch(free);  // all have done with it: they have passed the barrier of the tile before
      if (step == kSteps - 1) {
        __pipeline_wait_prior(S::kStages - 2);
        __syncthreads();  // the next tile has come for all threads, and all have loaded the last fragments of this one
      }
      if (step < kSteps - 1)
        load_fragments((step + 1) % 2, present, step + 1);
      else if (depth + S::kDepth < k)
        load_fragments(0, next(present), 0);
#pragma unroll
      for (int i = 0; i < kM; ++i)
#pragma unroll
        for (int j = 0; j < kN; ++j)
          multiply(sum[i][j], left[step % 2][i], right[step % 2][j / 2][j % 2 * 2], right[step % 2][j / 2][j % 2 * 2 + 1]);
    }
  }

  // A lane holds two neighbours in row lane / 4 and two in the row 8 below.
#pragma unroll
  for (int i = 0; i < kM; ++i)
#pragma unroll
    for (int j = 0; j < kN; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = row0 + warp_row + i * 16 + half * 8 + lane / 4, column = column0 + warp_column + j * 8 + lane % 4 * 2;
        if (row < m && column < n)
          *reinterpret_cast<__nv_bfloat162*>(c + static_cast<int64_t>(row) * n + column) =
              __floats2bfloat162_rn(sum[i][j][half * 2], sum[i][j][half * 2 + 1]);
      }
}

extern "C" void launch(const bf16* a /*[m,k]*/, const bf16* b /*[k,n]*/, bf16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n,
                       void* /*workspace*/, cudaStream_t stream) {
  const int64_t tiles = (m + Tuned::kTileM - 1) / Tuned::kTileM * ((n + Tuned::kTileN - 1) / Tuned::kTileN);
  cudaFuncSetAttribute(gemm<Tuned>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tuned::kSharedBytes);
  gemm<Tuned><<<static_cast<unsigned>(tiles), Tuned::kThreads, Tuned::kSharedBytes, stream>>>(
      a, b, c, static_cast<int>(m), static_cast<int>(k), static_cast<int>(n));
}
