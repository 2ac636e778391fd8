// Rung 1: tensor cores through WMMA.
//
// Changed     the shared-memory tile of sgemm's rung 3, with `wmma::mma_sync` in place of the inner loop: a
//             warp computes 32 x 32 of a 64 x 64 tile as four fragments of 16 x 16. Sums stay in fp32.
// Why         the beginning of the ladder: one call multiplies 16 x 16 x 16 for a whole warp. WMMA does not
//             say which lane holds which element, so the result goes through shared memory to be rounded and
//             stored.
// Prediction  a warp loads four fragments for four products: shared memory is the limit, and nothing
//             overlaps. 10 to 15 % of cuBLAS, and still two to three times the best fp32 kernel.
// Came        13.49 ms on an H100, 81.51 TFLOP/s. 10 % of the native baseline.
//
// Shapes      a [m, k], b [k, n], c [m, n], bf16, row-major.
// Launch      blocks of 128 threads over (n, m); tile 64 x 64, 32 deep.
// Resources   about 90 registers; 26.5 KB of shared memory.
// Cost        2 m n k FLOPs; m n k / 16 bytes of global loads.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so): 16-byte loads and stores; m anything, tiles
//             filled up with zeros.
// Source      the WMMA chapter of the CUDA C++ Programming Guide.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

using bf16 = __nv_bfloat16;
namespace wmma = nvcuda::wmma;

constexpr int kTile = 64, kDepth = 32, kThreads = 128, kWarpTile = 32, kFragment = 16;
constexpr int kPad = 8;  // elements; rows stay on 16 bytes and do not all begin in the same bank

struct __align__(32) Shared {
  bf16 a[kTile][kDepth + kPad];
  bf16 b[kDepth][kTile + kPad];
  float c[kTile][kTile + 4];
};

/// Fills a tile of kRows x kColumns with 16-byte vectors of a row-major matrix; zeros beyond its edges.
template <int kRows, int kColumns>
__device__ void load_tile(bf16 (&tile)[kRows][kColumns + kPad], const bf16* matrix, int64_t row0, int64_t column0, int64_t rows,
                          int64_t columns) {
  for (int i = threadIdx.x; i < kRows * kColumns / 8; i += kThreads) {
    const int row = i / (kColumns / 8), column = i % (kColumns / 8) * 8;
    const bool exists = row0 + row < rows && column0 + column < columns;
    *reinterpret_cast<uint4*>(&tile[row][column]) =
        exists ? *reinterpret_cast<const uint4*>(matrix + (row0 + row) * columns + column0 + column) : make_uint4(0, 0, 0, 0);
  }
}

__global__ void gemm(const bf16* __restrict__ a, const bf16* __restrict__ b, bf16* __restrict__ c, int64_t m, int64_t k,
                     int64_t n) {
  __shared__ Shared shared;
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile, column0 = static_cast<int64_t>(blockIdx.x) * kTile;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / 2 * kWarpTile, warp_column = warp % 2 * kWarpTile;

  wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment, float> sum[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    load_tile<kTile, kDepth>(shared.a, a, row0, k0, m, k);
    load_tile<kDepth, kTile>(shared.b, b, k0, column0, k, n);
    __syncthreads();  // the tiles are complete
    for (int depth = 0; depth < kDepth; depth += kFragment) {
      wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, bf16, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, bf16, wmma::row_major> right[2];
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(left[i], &shared.a[warp_row + i * kFragment][depth], kDepth + kPad);
        wmma::load_matrix_sync(right[i], &shared.b[depth][warp_column + i * kFragment], kTile + kPad);
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
    }
    __syncthreads();  // nobody needs the tiles any more
  }

  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(&shared.c[warp_row + i * kFragment][warp_column + j * kFragment], sum[i][j], kTile + 4,
                              wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < kTile * kTile / 2; i += kThreads) {
    const int row = i / (kTile / 2), column = i % (kTile / 2) * 2;
    if (row0 + row < m && column0 + column < n)
      *reinterpret_cast<__nv_bfloat162*>(c + (row0 + row) * n + column0 + column) =
          __floats2bfloat162_rn(shared.c[row][column], shared.c[row][column + 1]);
  }
}

extern "C" void launch(const bf16* a /*[m,k]*/, const bf16* b /*[k,n]*/, bf16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n,
                       void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>((m + kTile - 1) / kTile));
  gemm<<<grid, kThreads, 0, stream>>>(a, b, c, m, k, n);
}
