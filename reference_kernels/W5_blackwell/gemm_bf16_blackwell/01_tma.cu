// Rung 1: the copy engine brings the tiles.
//
// Changed     nothing before it on this ladder. One thread asks TMA for a box of each matrix, swizzled;
//             eight warps multiply it with `ldmatrix` and `mma.sync`, sums in registers.
// Why         the copies of a tile by threads cost as many instructions as its products. A box costs one
//             instruction, and its edges are filled with zeros by the engine.
// Prediction  what `mma.sync` can do where loading and multiplying take turns: below a tenth of what
//             tcgen05 can. Blackwell keeps these instructions, at the rate of older chips.
// Published   55 TFLOP/s at 4096^3 on a B200 for the same step in ThunderKittens
//             (kernels/gemm/educational_b200, level 05). Not measured here. That step uses WMMA.
//
// Shapes      a [m, k], b [n, k], c [m, n], bf16, row-major.
// Launch      one block of 256 threads a tile of 128 x 128, in bands of kBand tile rows.
// Resources   64 sums a thread; 32 KB of shared memory.
// Cost        2 m n k FLOPs; m n k / 32 bytes of global loads.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so): rows for TMA start on 16 bytes; m anything,
//             boxes are filled up with zeros.
// Source      PTX ISA 9.0, "cp.async.bulk.tensor", "mma". Runs on sm_90, too.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;

constexpr int kTileM = 128, kTileN = 128, kDepth = 64, kThreads = 256, kBand = 8;  // kBand: tile rows
constexpr int kBytesA = kTileM * 128, kBytesB = kTileN * 128;                      // [B]

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// A barrier in shared memory: a phase ends with the last of its arrivals, when the bytes that it was told to
// expect have arrived, too.
__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals) : "memory");
}
__device__ void arrive_and_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes)
               : "memory");
}
/// Until the phase of this parity is over.
__device__ void wait(uint64_t* barrier, int parity) {
  uint32_t over = 0;
  while (!over)
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(over)
        : "r"(address(barrier)), "r"(parity)
        : "memory");
}

/// The copy engine fetches the box of `map` at (column, row), fills with zeros what lies outside, and signals
/// the barrier.
__device__ void load(void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], "
      "[%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row)
      : "memory");
}

/// Four matrices of 8 x 8: lane i gives the address of row i % 8 of matrix i / 8.
__device__ void load_matrices(uint32_t (&r)[4], const uint8_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row)));
}
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, "
      "%1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// 16-byte piece `p` of row `r` of a tile, where TMA put it.
__device__ const uint8_t* piece(const uint8_t* tile, int r, int p) {
  return tile + r * 128 + (p ^ r % 8) * 16;
}

/// Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may be
/// lower.
__device__ void place_of(int tile, int rows, int columns, int& row, int& column) {
  const int band = tile / (kBand * columns), within = tile % (kBand * columns);
  const int height = rows - band * kBand < kBand ? rows - band * kBand : kBand;
  row = band * kBand + within % height, column = within / height;
}

__global__ void __launch_bounds__(kThreads)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         bf16* __restrict__ c, int m, int k, int n) {
  __shared__ alignas(1024) uint8_t a[kBytesA], b[kBytesB];  // rows of 64 numbers along k
  __shared__ uint64_t full;
  int row, column;
  place_of(blockIdx.x, (m + kTileM - 1) / kTileM, (n + kTileN - 1) / kTileN, row, column);
  row *= kTileM, column *= kTileN;
  if (threadIdx.x == 0) {
    init(&full, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees it, too
  }
  __syncthreads();

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
  float sums[4][4][4] = {};  // 64 x 32 for each warp
  for (int depth = 0, phase = 0; depth < k; depth += kDepth, phase ^= 1) {
    if (threadIdx.x == 0) {
      arrive_and_expect(&full, kBytesA + kBytesB);
      load(a, &map_a, depth, row, &full);
      load(b, &map_b, depth, column, &full);
    }
    wait(&full, phase);
#pragma unroll
    for (int i = 0; i < kDepth / 16; ++i) {
      uint32_t left[4][4], right[2][4];
#pragma unroll
      for (int y = 0; y < 4; ++y)
        load_matrices(left[y], piece(a, warp_row + y * 16 + lane % 16, 2 * i + lane / 16));
#pragma unroll
      for (int x = 0; x < 2; ++x)  // 16 columns of the product: two pieces along k of eight rows, twice
        load_matrices(right[x],
                      piece(b, warp_column + x * 16 + lane / 16 * 8 + lane % 8, 2 * i + lane / 8 % 2));
#pragma unroll
      for (int y = 0; y < 4; ++y)
#pragma unroll
        for (int x = 0; x < 4; ++x)
          multiply(sums[y][x], left[y], right[x / 2][x % 2 * 2], right[x / 2][x % 2 * 2 + 1]);
    }
    __syncthreads();  // before the tiles are overwritten
  }

  // A lane holds pairs of neighbours: in row lane / 4 of each sixteen, and in the row 8 below.
#pragma unroll
  for (int y = 0; y < 4; ++y)
#pragma unroll
    for (int x = 0; x < 4; ++x)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = row + warp_row + y * 16 + lane / 4 + half * 8;
        const int at = column + warp_column + x * 8 + lane % 4 * 2;
        if (r < m && at < n)
          *reinterpret_cast<__nv_bfloat162*>(c + static_cast<int64_t>(r) * n + at) =
              __floats2bfloat162_rn(sums[y][x][half * 2], sums[y][x][half * 2 + 1]);
      }
}

/// A matrix as TMA sees it: boxes of 64 columns, which make 128 bytes, and so many rows.
CUtensorMap map_of(const bf16* matrix, int64_t rows, int64_t columns, int box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * sizeof(bf16)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows)}, step[] = {1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<bf16*>(matrix), size, pitch, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the matrix");
  return map;
}

extern "C" void launch(const bf16* a /*[m,k]*/, const bf16* b /*[n,k]*/, bf16* c /*[m,n]*/, int64_t m,
                       int64_t k, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const int64_t tiles = (m + kTileM - 1) / kTileM * ((n + kTileN - 1) / kTileN);
  gemm<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(map_of(a, m, k, kTileM),
                                                              map_of(b, n, k, kTileN), c, static_cast<int>(m),
                                                              static_cast<int>(k), static_cast<int>(n));
}
