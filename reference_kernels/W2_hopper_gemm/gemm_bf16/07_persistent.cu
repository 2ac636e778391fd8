// Rung 7: blocks that stay, and results that leave on their own.
//
// Changed     one block per multiprocessor takes tile after tile. Results go through shared memory, in boxes
//             of 64 x 64, and leave by TMA; meanwhile the producer has filled all stages for the next tile.
// Why         in rung 6 the multiprocessor computes nothing from the last product of a tile until the first
//             stage of the next one is there: storing, ending, starting, fetching. Results that a lane stores
//             itself are 4 bytes wide.
// Prediction  1.05x rung 6: 128 steps of k take 70 us, what lies between two tiles a few.
// Came        1.35 ms on an H100, 817.38 TFLOP/s, 1.07 times the rung before. 99 % of the native baseline.
//
// Shapes      a [m, k], b [k, n], c [m, n], bf16, row-major.
// Launch      one block of 384 threads per multiprocessor; tiles of 128 x 256, in bands of kBand tile rows.
// Resources   232 registers per consumer, 128 of them sums, and 40 a producer; 225 KB of shared memory: four
//             stages, four boxes.
// Cost        2 m n k FLOPs; 3 m n k / 128 bytes of global loads.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so): rows for TMA start on 16 bytes; m anything,
//             boxes are filled up with zeros.
// Source      persistent kernels as in CUTLASS 3 (NVIDIA, 2022). Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;

constexpr int kTileM = 128, kTileN = 256, kDepth = 64, kStages = 4, kConsumers = 2, kThreads = 128 * (1 + kConsumers);
constexpr int kBand = 8;  // tile rows
constexpr int kOutBoxes = 2;  // a consumer's, on their way to C
constexpr int kBox = 64 * 64 * sizeof(bf16), kBytesA = kTileM / 64 * kBox, kBytesB = kTileN / 64 * kBox;  // [B]
constexpr int kSharedBytes = kStages * (kBytesA + kBytesB) + kConsumers * kOutBoxes * kBox + 1024;  // to begin at a multiple of 1024

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

/// Where a matrix lies, for wgmma: rows of 128 bytes, swizzled as TMA writes them; `leading` and `stride` [B]
/// say where the next 64 columns and the next eight rows begin.
__device__ uint64_t matrix(const void* start, int leading, int stride) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | static_cast<uint64_t>(leading / 16) << 16 |
         static_cast<uint64_t>(stride / 16) << 32 | uint64_t{1} << 62;
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
/// d = a * b, or d += a * b: 64 x 256 results, 16 deep, by four warps. Starts it, does not wait.
__device__ void multiply(float (&d)[128], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1, 0, 1;\n"  // A along k, B along n
      "}"
      : D16(0), D16(16), D16(32), D16(48), D16(64), D16(80), D16(96), D16(112)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
#undef D16
#undef D4
__device__ void begin_multiplying() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kOnTheirWay>
__device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOnTheirWay) : "memory");
}

/// Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may be
/// lower.
__device__ void place_of(int tile, int rows, int columns, int& row, int& column) {
  const int band = tile / (kBand * columns), within = tile % (kBand * columns);
  const int height = rows - band * kBand < kBand ? rows - band * kBand : kBand;
  row = band * kBand + within % height, column = within / height;
}

/// Writes 64 x 64 results of a warp group into a box: 16-byte piece p of row r lies at p ^ (r % 8), as TMA
/// expects it.
__device__ void fill(uint8_t* box, const float* d) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int piece = 0; piece < 8; ++piece)
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // a lane holds pairs: in row lane / 4 of its warp's sixteen, and in the row 8 below
      const int row = threadIdx.x / 32 % 4 * 16 + half * 8 + lane / 4;
      *reinterpret_cast<__nv_bfloat162*>(box + row * 128 + (piece ^ row % 8) * 16 + lane % 4 * 4) =
          __floats2bfloat162_rn(d[piece * 4 + half * 2], d[piece * 4 + half * 2 + 1]);
    }
}
/// The threads of one warp group meet.
__device__ void meet(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory"); }

__global__ void __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c,
         int m, int k, int n) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full[kStages], empty[kStages];
  uint8_t* const stages = shared + (1024 - address(shared) % 1024) % 1024;
  const auto a_tile = [&](int stage) { return stages + stage * (kBytesA + kBytesB); };  // 64 rows after 64 rows
  const auto b_tile = [&](int stage) { return a_tile(stage) + kBytesA; };               // 64 columns after 64 columns
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(full + i, 1), init(empty + i, kConsumers);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
  }
  __syncthreads();

  const int rows = (m + kTileM - 1) / kTileM, columns = (n + kTileN - 1) / kTileN;
  int stage = 0, phase = 0;
  const auto advance = [&] { if (++stage == kStages) stage = 0, phase ^= 1; };
  const int group = threadIdx.x / 128;
  if (group == 0) {  // the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
        int row, column;
        place_of(tile, rows, columns, row, column);
        for (int depth = 0; depth < k; depth += kDepth, advance()) {
          wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
          arrive_and_expect(full + stage, kBytesA + kBytesB);
          load(a_tile(stage), &map_a, depth, row * kTileM, full + stage);
          for (int j = 0; j < kTileN / 64; ++j) load(b_tile(stage) + j * kBox, &map_b, column * kTileN + j * 64, depth, full + stage);
        }
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int consumer = group - 1, me = threadIdx.x % 128;
    uint8_t* const boxes = stages + kStages * (kBytesA + kBytesB) + consumer * kOutBoxes * kBox;
    float d[128];
    for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
      int row, column, before = 0;  // before: the stage of the last step
      place_of(tile, rows, columns, row, column);
      for (int depth = 0; depth < k; depth += kDepth, advance()) {
        wait(full + stage, phase);
        begin_multiplying();
#pragma unroll
        for (int i = 0; i < kDepth / 16; ++i)  // 16 of k are 32 bytes of A's rows, and 16 rows of B
          multiply(d, matrix(a_tile(stage) + consumer * kBox + i * 32, 0, 1024), matrix(b_tile(stage) + i * 2048, kBox, 1024), depth + i > 0);
        commit();
        wait_for_products<1>();  // those of the step before
        if (depth > 0 && me == 0) arrive(empty + before);  // for all four warps: their products are one
        before = stage;
      }
      wait_for_products<0>();
      if (me == 0) arrive(empty + before);

#pragma unroll
      for (int j = 0; j < kTileN / 64; ++j) {
        uint8_t* const box = boxes + j % kOutBoxes * kBox;
        if (me == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kOutBoxes - 1) : "memory");  // its last results have left
        meet(group);
        fill(box, d + j * 32);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
        meet(group);
        if (me == 0) store(&map_c, box, column * kTileN + j * 64, row * kTileM + consumer * 64);
      }
    }
    if (me == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // nobody leaves before its results have
  }
}

/// A matrix as TMA sees it: boxes of 64 columns, which make 128 bytes, and so many rows.
CUtensorMap map_of(const bf16* matrix, int64_t rows, int64_t columns, int box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
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

extern "C" void launch(const bf16* a /*[m,k]*/, const bf16* b /*[k,n]*/, bf16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n,
                       void* /*workspace*/, cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int64_t tiles = (m + kTileM - 1) / kTileM * ((n + kTileN - 1) / kTileN), blocks = tiles < multiprocessors ? tiles : multiprocessors;
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  gemm<<<static_cast<unsigned>(blocks), kThreads, kSharedBytes, stream>>>(map_of(a, m, k, kTileM), map_of(b, k, n, kDepth), map_of(c, m, n, 64),
                                                                          static_cast<int>(m), static_cast<int>(k), static_cast<int>(n));
}
