// Rung 2: TMA and WGMMA, one block a multiprocessor, which walks over the tiles that have rows.
//
// Changed     the kernel of moe_gemm_contiguous' rung 2. Each role of a block walks over masked_m and so
//             numbers the tiles that exist; no block starts in vain. A box of results whose 64 rows all
//             exist is stored by TMA, another one row by row. A warp that has no other work writes zeros
//             to the rows that are not used.
// Why         mma.sync reaches half of the tensor cores' rate at best, and operands pass the registers;
//             memory waits.
// Prediction  1 GB of weights at 2.5 TB/s: 0.4 ms.
// Came        413 us on an H100, 2509 GB/s, 5.05 times the rung before. 505 % of the native baseline.
//
// Shapes      a [groups, max_m, k], b [groups, n, k], e4m3; sfa [groups, max_m, ceil(k/128)], sfb [groups,
//             ceil(n/128), ceil(k/128)], fp32; masked_m [groups], i32; c [groups, max_m, n], bf16.
// Launch      one block of 384 threads per multiprocessor; tiles of 128 x 128.
// Resources   232 registers a consumer, 128 of them parts and sums, and 40 a producer; 225 KB of shared
//             memory: six stages, four boxes.
// Cost        2 n k FLOPs for each row of a tile; 32 KB of loads for each tile and step.
// Divides     k % 16 == 0 and n % 8 == 0 (the problem says so).
// Source      grouped products in masked layout, as in DeepGEMM (2025). Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;
using e4m3 = __nv_fp8_e4m3;

constexpr int kTile = 128, kDepth = 128, kStages = 6, kConsumers = 2, kThreads = 128 * (1 + kConsumers);
constexpr int kTileBytes = kTile * kDepth, kBox = 64 * 64 * sizeof(bf16), kOutBoxes = kTile / 64;  // [B]; a consumer's boxes on their way to C
constexpr int kSharedBytes = kStages * 2 * kTileBytes + kConsumers * kOutBoxes * kBox + 1024;  // to begin at a multiple of 1024

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// A barrier in shared memory: a phase ends with the last of its arrivals, when the bytes that it was told to
// expect have arrived, too.
__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}
__device__ void arrive_and_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes) : "memory");
}
__device__ void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}
/// Until the phase of this parity is over.
__device__ void wait(uint64_t* barrier, int parity) {
  uint32_t over = 0;
  while (!over)
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}" : "=r"(over) : "r"(address(barrier)), "r"(parity) : "memory");
}

/// The copy engine fetches the box of `map` at (column, row), fills with zeros what lies outside, and signals
/// the barrier.
__device__ void load(void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                   address(to)), "l"(map), "r"(address(barrier)), "r"(column), "r"(row) : "memory");
}
/// The same in the other direction; what lies outside of C is not stored.
__device__ void store(const CUtensorMap* map, const void* from, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(address(from)),
               "r"(column), "r"(row) : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Where a matrix lies, for wgmma: rows of 128 bytes, swizzled as TMA writes them; eight rows take 1024 bytes.
__device__ uint64_t matrix(const void* start) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | uint64_t{1024 / 16} << 32 | uint64_t{1} << 62;
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
/// d = a * b, or d += a * b: 64 x 128 results, 32 deep, by four warps. Starts it, does not wait.
__device__ void multiply(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1;\n"  // fp8: both along k, there is no other way
      "}"
      : D16(0), D16(16), D16(32), D16(48)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
#undef D16
#undef D4
__device__ void begin_multiplying() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ void wait_for_products() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

/// The scales of one step: those of a thread's two rows, and that of the tile's columns.
struct Scales {
  const float *a[2], *b;
  float of_a[2], of_b;
  /// @param row  the first of the thread's rows; beyond the last one, it reads the last one
  __device__ Scales(const float* sfa, const float* sfb, int row, int column, int m, int blocks) {
    for (int half = 0; half < 2; ++half) a[half] = sfa + static_cast<int64_t>(min(row + half * 8, m - 1)) * blocks;
    b = sfb + static_cast<int64_t>(column / kDepth) * blocks;
  }
  __device__ void fetch(int step) {
    for (int half = 0; half < 2; ++half) of_a[half] = a[half][step];
    of_b = b[step];
  }
};
/// sum += part * scale: a thread holds pairs, in turn of either of its rows.
__device__ void promote(float (&sum)[64], const float (&part)[64], const float (&scale)[2]) {
#pragma unroll
  for (int i = 0; i < 64; ++i) sum[i] += part[i] * scale[i / 2 % 2];
}
/// Writes 64 x 64 results of a warp group into a box: 16-byte piece p of row r lies at p ^ (r % 8), as TMA
/// expects it.
__device__ void fill(uint8_t* box, const float* sum) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int piece = 0; piece < 8; ++piece)
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // a lane holds pairs: in row lane / 4 of its warp's sixteen, and in the row 8 below
      const int row = threadIdx.x / 32 % 4 * 16 + half * 8 + lane / 4;
      *reinterpret_cast<__nv_bfloat162*>(box + row * 128 + (piece ^ row % 8) * 16 + lane % 4 * 4) =
          __floats2bfloat162_rn(sum[piece * 4 + half * 2], sum[piece * 4 + half * 2 + 1]);
    }
}
/// The threads of one warp group meet.
__device__ void meet(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory"); }

/// A block's tiles in order. Groups follow each other; within a group, all rows of a tile column before the next column,
/// so that the tiles that share columns of b run at the same time.
struct Walk {
  const int* masked_m;
  int groups, columns, group = 0, before = 0;  // before: tiles of the groups in front
  int row = 0, column = 0;                     // of the tile, in tiles

  __device__ Walk(const int* masked_m_, int groups_, int columns_) : masked_m(masked_m_), groups(groups_), columns(columns_) {}
  __device__ int rows() const { return masked_m[group]; }
  /// Tiles have to be asked for in ascending order. Behind the last one: false.
  __device__ bool find(int tile) {
    for (; group < groups; ++group) {
      const int height = (rows() + kTile - 1) / kTile, within = tile - before;
      if (within < height * columns) {
        row = within % height, column = within / height;
        return true;
      }
      before += height * columns;
    }
    return false;
  }
};

/// Stores the rows of a box that exist, 64 numbers each; the copy engine would write all of them.
__device__ void store_rows(const uint8_t* box, bf16* c, int64_t first, int rows, int column, int n) {
  for (int i = threadIdx.x % 128; i < rows * 8; i += 128) {
    const int row = i / 8, piece = i % 8;
    if (column + piece * 8 < n)
      *reinterpret_cast<uint4*>(c + (first + row) * n + column + piece * 8) =
          *reinterpret_cast<const uint4*>(box + row * 128 + (piece ^ row % 8) * 16);
  }
}

/// Zeros for the rows that are not used: a warp of each block has a share of them.
__device__ void clear_rows(const int* masked_m, bf16* c, int groups, int max_m, int n) {
  for (int row = blockIdx.x; row < groups * max_m; row += gridDim.x)
    if (row % max_m >= masked_m[row / max_m])
      for (int i = threadIdx.x % 32 * 8; i < n; i += 32 * 8) *reinterpret_cast<uint4*>(c + int64_t{row} * n + i) = uint4{};
}

__global__ void __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c,
         const float* __restrict__ sfa, const float* __restrict__ sfb, const int* __restrict__ masked_m, bf16* __restrict__ c,
         int groups, int max_m, int k, int n) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full[kStages], empty[kStages];
  uint8_t* const stages = shared + (1024 - address(shared) % 1024) % 1024;
  const auto a_tile = [&](int stage) { return stages + stage * 2 * kTileBytes; };
  const auto b_tile = [&](int stage) { return a_tile(stage) + kTileBytes; };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(full + i, 1), init(empty + i, kConsumers);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
  }
  __syncthreads();

  const int columns = (n + kTile - 1) / kTile;
  const int blocks = (k + kDepth - 1) / kDepth, role = threadIdx.x / 128;
  Walk walk(masked_m, groups, columns);
  int stage = 0, phase = 0;
  const auto advance = [&] { if (++stage == kStages) stage = 0, phase ^= 1; };
  if (role == 0) {  // the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x >= 96) clear_rows(masked_m, c, groups, max_m, n);
    if (threadIdx.x == 0)
      for (int tile = blockIdx.x; walk.find(tile); tile += gridDim.x) {
        // Beyond a group's a: rows that are not stored. Beyond its b: columns that are not.
        const int a_row = walk.group * max_m + walk.row * kTile, b_row = walk.group * n + walk.column * kTile;
        for (int block = 0; block < blocks; ++block, advance()) {
          wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
          arrive_and_expect(full + stage, 2 * kTileBytes);
          load(a_tile(stage), &map_a, block * kDepth, a_row, full + stage);
          load(b_tile(stage), &map_b, block * kDepth, b_row, full + stage);
        }
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int consumer = role - 1, me = threadIdx.x % 128;
    uint8_t* const boxes = stages + kStages * 2 * kTileBytes + consumer * kOutBoxes * kBox;
    for (int tile = blockIdx.x; walk.find(tile); tile += gridDim.x) {
      const int first = walk.group * max_m + walk.row * kTile + consumer * 64;  // row of all groups'
      const int rows = walk.rows() - walk.row * kTile - consumer * 64;          // that exist; at 64 or more the box is full
      Scales scales(sfa, sfb + static_cast<int64_t>(walk.group) * columns * blocks, first + me / 32 * 16 + me % 32 / 4,
                    walk.column * kTile, groups * max_m, blocks);
      scales.fetch(0);
      float sum[64] = {}, part[64];
      for (int block = 0; block < blocks; ++block, advance()) {
        wait(full + stage, phase);
        begin_multiplying();
#pragma unroll
        for (int i = 0; i < kDepth / 32; ++i)  // 32 of k are 32 bytes
          multiply(part, matrix(a_tile(stage) + consumer * 64 * kDepth + i * 32), matrix(b_tile(stage) + i * 32), i > 0);
        commit();
        const float scale[2] = {scales.of_a[0] * scales.of_b, scales.of_a[1] * scales.of_b};
        if (block + 1 < blocks) scales.fetch(block + 1);
        wait_for_products();
        if (me == 0) arrive(empty + stage);  // for all four warps: their products are one
        promote(sum, part, scale);
      }

      if (me == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // its last results have left
      meet(role);
#pragma unroll
      for (int j = 0; j < kOutBoxes; ++j) fill(boxes + j * kBox, sum + j * 32);
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
      meet(role);
      for (int j = 0; j < kOutBoxes; ++j) {
        const int column = walk.column * kTile + j * 64;
        if (rows < 64) store_rows(boxes + j * kBox, c, first, rows, column, n);
        else if (me == 0) store(&map_c, boxes + j * kBox, column, first);
      }
    }
    if (me == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // results have left before the block ends
  }
}

/// A matrix as TMA sees it: boxes of so many rows, and of 128 bytes.
template <class T>
CUtensorMap map_of(const T* matrix, int64_t rows, int64_t columns, int box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * sizeof(T)};
  const cuuint32_t box[] = {128 / sizeof(T), static_cast<cuuint32_t>(box_rows)}, step[] = {1, 1};
  CUtensorMap map;
  if (encode(&map, sizeof(T) == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<T*>(matrix), size,
             pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the matrix");
  return map;
}

extern "C" void launch(const e4m3* a /*[groups,max_m,k]*/, const float* sfa /*[groups,max_m,ceil_div(k, 128)]*/,
                       const e4m3* b /*[groups,n,k]*/, const float* sfb /*[groups,ceil_div(n, 128),ceil_div(k, 128)]*/,
                       const int* masked_m /*[groups]*/, bf16* c /*[groups,max_m,n]*/, int64_t groups, int64_t max_m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int64_t tiles = groups * ((max_m + kTile - 1) / kTile) * ((n + kTile - 1) / kTile);  // at most
  const int64_t grid = tiles < multiprocessors ? tiles : multiprocessors;
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  gemm<<<static_cast<unsigned>(grid), kThreads, kSharedBytes, stream>>>(
      map_of(a, groups * max_m, k, kTile), map_of(b, groups * n, k, kTile), map_of(c, groups * max_m, n, 64), sfa, sfb, masked_m, c,
      static_cast<int>(groups), static_cast<int>(max_m), static_cast<int>(k), static_cast<int>(n));
}
