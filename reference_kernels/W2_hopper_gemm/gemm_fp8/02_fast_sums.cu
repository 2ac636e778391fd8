// Rung 2: wgmma, with all of k in the tensor cores' own sums.
//
// Changed     TMA brings tiles of 128 bytes of k into a ring of six stages, one thread asks for them, and two
//             warp groups multiply 64 x 128 results each by wgmma. Its sums stay where they are until k is at
//             its end.
// Why         mma.sync makes 16-bit products of fp8 operands. Only wgmma has fp8 products on Hopper, at twice
//             the rate. It takes both operands from shared memory, and no thread has to hold them in
//             registers.
// Prediction  6x rung 1, 1000 TFLOP/s: the tile needs 160 bytes of shared memory a cycle at full rate, 128
//             are there, and each block starts with an empty ring. The number is right, the first reason is
//             not: the same tile in blocks that stay keeps the tensor cores busy for 94 % of the time. It is
//             the start and the end of a block.
//
// Shapes      a [m, k], b [n, k], e4m3; sa, sb [1], fp32; c [m, n], bf16.
// Launch      one block of 384 threads a tile of 128 x 128, in bands of kBand tile rows.
// Resources   232 registers a consumer, 64 of them sums, and 40 a producer; 193 KB of shared memory.
// Cost        2 m n k FLOPs; m n k / 64 bytes of global loads.
// Divides     k % 16 == 0 and n % 8 == 0 (the problem says so); m anything, boxes are filled up with zeros.
// Source      warp specialisation as in CUTLASS 3 (NVIDIA, 2022). Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;
using e4m3 = __nv_fp8_e4m3;

constexpr int kTile = 128, kDepth = 128, kStages = 6, kConsumers = 2, kThreads = 128 * (1 + kConsumers),
              kBand = 8;
constexpr int kTileBytes = kTile * kDepth,
              kSharedBytes = kStages * 2 * kTileBytes + 1024;  // to begin at a multiple of 1024

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// A barrier in shared memory: a phase ends with the last of its arrivals, when the bytes that it was told to
// expect have arrived, too.
__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}
__device__ void arrive_and_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes)
               : "memory");
}
__device__ void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
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
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
          "r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row)
      : "memory");
}

/// Where a matrix lies, for wgmma: rows of 128 bytes, swizzled as TMA writes them; eight rows take 1024
/// bytes.
__device__ uint64_t matrix(const void* start) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | uint64_t{1024 / 16} << 32 |
         uint64_t{1} << 62;
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
template <int kOnTheirWay>
__device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOnTheirWay) : "memory");
}

/// Of a warp group's 64 x 128 results, those of this thread.
__device__ void store(bf16* c, const float (&sum)[64], float scale, int row, int column, int m, int n) {
#pragma unroll
  for (int i = 0; i < 64; i += 2) {
    const int at = row + i / 2 % 2 * 8, to = column + i / 4 * 8 + threadIdx.x % 4 * 2;
    if (at < m && to < n)
      *reinterpret_cast<__nv_bfloat162*>(c + static_cast<int64_t>(at) * n + to) =
          __floats2bfloat162_rn(sum[i] * scale, sum[i + 1] * scale);
  }
}

/// Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may be
/// lower.
__device__ void place_of(int tile, int rows, int columns, int& row, int& column) {
  const int band = tile / (kBand * columns), within = tile % (kBand * columns);
  const int height = min(rows - band * kBand, kBand);
  row = band * kBand + within % height, column = within / height;
}

__global__ void __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         const float* __restrict__ sa, const float* __restrict__ sb, bf16* __restrict__ c, int m, int k,
         int n) {
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

  int row, column;
  place_of(blockIdx.x, (m + kTile - 1) / kTile, (n + kTile - 1) / kTile, row, column);
  row *= kTile, column *= kTile;
  const int blocks = (k + kDepth - 1) / kDepth, group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  int stage = 0, phase = 0;
  const auto advance = [&] {
    if (++stage == kStages) stage = 0, phase ^= 1;
  };
  if (group == 0) {  // the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (int block = 0; block < blocks; ++block, advance()) {
        wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
        arrive_and_expect(full + stage, 2 * kTileBytes);
        load(a_tile(stage), &map_a, block * kDepth, row, full + stage);
        load(b_tile(stage), &map_b, block * kDepth, column, full + stage);
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int consumer = group - 1, me = threadIdx.x % 128;
    const int my_row = row + consumer * 64 + me / 32 * 16 + me % 32 / 4;
    float sum[64];
    int before = 0;  // the stage of the last step
    for (int block = 0; block < blocks; ++block, advance()) {
      wait(full + stage, phase);
      begin_multiplying();
#pragma unroll
      for (int i = 0; i < kDepth / 32; ++i)  // 32 of k are 32 bytes
        multiply(sum, matrix(a_tile(stage) + consumer * 64 * kDepth + i * 32), matrix(b_tile(stage) + i * 32),
                 block + i > 0);
      commit();
      wait_for_products<1>();                            // those of the step before
      if (block > 0 && me == 0) arrive(empty + before);  // for all four warps: their products are one
      before = stage;
    }
    wait_for_products<0>();
    store(c, sum, *sa * *sb, my_row, column, m, n);
  }
}

/// A matrix as TMA sees it: boxes of 128 rows, and of 128 bytes, which are 128 columns.
CUtensorMap map_of(const e4m3* matrix, int64_t rows, int64_t columns) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns)};
  const cuuint32_t box[] = {kDepth, kTile}, step[] = {1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<e4m3*>(matrix), size, pitch, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the matrix");
  return map;
}

extern "C" void launch(const e4m3* a /*[m,k]*/, const float* sa /*[1]*/, const e4m3* b /*[n,k]*/,
                       const float* sb /*[1]*/, bf16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n,
                       void* /*workspace*/, cudaStream_t stream) {
  const int64_t tiles = (m + kTile - 1) / kTile * ((n + kTile - 1) / kTile);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  gemm<<<static_cast<unsigned>(tiles), kThreads, kSharedBytes, stream>>>(
      map_of(a, m, k), map_of(b, n, k), sa, sb, c, static_cast<int>(m), static_cast<int>(k),
      static_cast<int>(n));
}
