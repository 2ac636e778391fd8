// Rung 1: four bits, and their scales inside the product.
//
// Changed     nothing before it on this ladder; gemm_bf16_blackwell ends at pairs of blocks, and this is
//             its rung 3 with another instruction: `mxf4nvf4` takes codes of four bits, 64 along k, and
//             multiplies every 16 products by two scales.
// Why         the codes need no decoding, and the scales no thread: they lie in memory as tensor memory
//             wants them, so two bulk copies and eight `tcgen05.cp` of 512 bytes a stage bring them there.
// Prediction  four times the rate of bf16 where it is bound by products; half of that is likely here,
//             where an instruction has 128 columns and the epilogue is not hidden.
// Published   the contest of NVFP4 products on a B200 gives as its limits 8.99, 2.35 and 1.33 us for (m,
//             n, k) = (128, 7168, 16384), (128, 4096, 7168), (128, 7168, 2048). Not measured here.
//
// Shapes      a [m, k], b [n, k] e2m1, two in a byte; sfa, sfb e4m3 in tiles of 128 x 4; c [m, n] bf16.
// Launch      one block of 192 threads a tile of 128 x 128, in bands of kBand tile rows.
// Resources   36 KB of shared memory a stage, four of them; 256 columns of tensor memory, 160 of them
//             used: 128 for sums, 32 for scales.
// Cost        2 m n k FLOPs; m n k (1 / 128 + 1 / 1024) bytes of global loads.
// Divides     k % 64 == 0 and n % 8 == 0 (the problem says so); m anything: boxes are filled up with
//             zeros.
// Source      PTX ISA 9.0, 9.7.16.10.7, "Block scaling". Needs sm_100a. Emulated from the PTX ISA; never
//             run on hardware here.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;

constexpr int kTileM = 128, kTileN = 128, kDepth = 256, kStages = 4, kThreads = 192,
              kBand = 8;                                       // kBand: tile rows
constexpr int kBytesA = kTileM * 128, kBytesB = kTileN * 128;  // [B]
constexpr int kScaleTile = 512, kScaleBytes = 4 * kScaleTile;  // [B] for 64 and for 256 of k
constexpr int kStageBytes = kBytesA + kBytesB + 2 * kScaleBytes;
constexpr int kSharedBytes = kStages * kStageBytes + 1024;                // to begin at a multiple of 1024
constexpr int kColumns = 256, kScalesA = kTileN, kScalesB = kTileN + 16;  // of tensor memory
// A and B are e2m1, scales e4m3 from byte 0 of a word (PTX ISA 9.0, 9.7.16.4.2, table 44).
constexpr uint32_t kInstruction = 1 << 7 | 1 << 10 | kTileN / 8 << 17 | kTileM / 128 << 27;

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
/// Neighbours in memory, as they are.
__device__ void load_bytes(void* to, const void* from, int bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          address(to)),
      "l"(from), "r"(bytes), "r"(address(barrier))
      : "memory");
}

/// Where an operand lies, for tcgen05.mma (PTX ISA 9.0, 9.7.16.4.1): rows of 128 bytes along k, swizzled as
/// TMA writes them, eight rows after every 1024 bytes. Bits 46 to 48 are always 0b001.
__device__ uint64_t matrix(const void* start) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | uint64_t{1} << 16 |
         uint64_t{1024 / 16} << 32 | uint64_t{1} << 46 | uint64_t{2} << 61;
}
/// Where 32 rows of 16 bytes lie, one after the other: no swizzling, eight rows after every 128 bytes.
__device__ uint64_t scale_tile(const void* start) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | uint64_t{128 / 16} << 32 |
         uint64_t{1} << 46;
}

// Tensor memory: 128 lanes of 512 columns. A warp takes columns, and the same warp gives them back.
__device__ void allocate(uint32_t* place, int columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(address(place)),
               "r"(columns)
               : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
__device__ void release(uint32_t sums, int columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(sums), "r"(columns));
}
// Around a synchronisation of threads: what came before it in tensor memory, and what comes after.
__device__ void fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

/// The scales of 128 rows, 64 of k: row r goes to lane r % 32, column r / 32, in all four groups of lanes.
__device__ void copy_scales(uint32_t to, uint64_t from) {
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from));
}
/// sums (+)= a * b, 64 deep: each 16 products times the scales of their blocks. Behind the copies of the same
/// thread it needs no wait.
__device__ void multiply(uint32_t sums, uint64_t a, uint64_t b, uint32_t scales_a, uint32_t scales_b,
                         bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %6, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], [%5], p;\n"
      "}" ::"r"(sums),
      "l"(a), "l"(b), "r"(kInstruction), "r"(scales_a), "r"(scales_b), "r"(static_cast<int>(add)));
}
/// The barrier is told when everything is done that the thread has started so far.
__device__ void commit(uint64_t* barrier) {
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address(barrier))
      : "memory");
}

#define R4(i) "=r"(r[i]), "=r"(r[i + 1]), "=r"(r[i + 2]), "=r"(r[i + 3])
/// 32 columns of the thread's own lane: warp w of a warp group sees lanes 32 w to 32 w + 31, and no others.
__device__ void read(uint32_t (&r)[32], uint32_t from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : R4(0), R4(4), R4(8), R4(12), R4(16), R4(20), R4(24), R4(28)
      : "r"(from));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}
#undef R4

/// Eight sums, rounded: 16 bytes of a row.
__device__ uint4 rounded(const uint32_t* r) {
  uint4 piece;
  auto* pairs = reinterpret_cast<__nv_bfloat162*>(&piece);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    pairs[i] = __floats2bfloat162_rn(__uint_as_float(r[2 * i]), __uint_as_float(r[2 * i + 1]));
  return piece;
}

/// A thread writes its lane's row of the tile, 32 columns at a time.
__device__ void write_tile(uint32_t sums, bf16* c, int row, int column, int m, int n) {
  const int warp = threadIdx.x / 32 % 4;
  row += threadIdx.x % 128;
  for (int at = 0; at < kTileN; at += 32) {
    uint32_t r[32];
    read(r, sums + (static_cast<uint32_t>(warp * 32) << 16) + at);
#pragma unroll
    for (int i = 0; i < 32; i += 8)  // n is a multiple of 8
      if (row < m && column + at + i < n)
        *reinterpret_cast<uint4*>(c + static_cast<int64_t>(row) * n + column + at + i) = rounded(r + i);
  }
}

/// Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may be
/// lower.
__device__ void place_of(int tile, int rows, int columns, int& row, int& column) {
  const int band = tile / (kBand * columns), within = tile % (kBand * columns);
  const int height = rows - band * kBand < kBand ? rows - band * kBand : kBand;
  row = band * kBand + within % height, column = within / height;
}

__global__ void __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ CUtensorMap map_a, const uint8_t* __restrict__ sfa,
         const __grid_constant__ CUtensorMap map_b, const uint8_t* __restrict__ sfb, bf16* __restrict__ c,
         int m, int k, int n) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full[kStages], empty[kStages], done;
  __shared__ uint32_t place;
  uint8_t* const stages = shared + (1024 - address(shared) % 1024) % 1024;
  const auto a_tile = [&](int stage) { return stages + stage * (kBytesA + kBytesB); };
  const auto b_tile = [&](int stage) { return a_tile(stage) + kBytesA; };
  const auto a_scales = [&](int stage) { return a_tile(kStages) + stage * 2 * kScaleBytes; };
  const auto b_scales = [&](int stage) { return a_scales(stage) + kScaleBytes; };
  const int warp = threadIdx.x / 32;
  const bool leads = threadIdx.x % 32 == 0;
  int row, column;
  place_of(blockIdx.x, (m + kTileM - 1) / kTileM, (n + kTileN - 1) / kTileN, row, column);
  const uint8_t* const scales_a = sfa + static_cast<int64_t>(row) * (k / 64) * kScaleTile;
  const uint8_t* const scales_b = sfb + static_cast<int64_t>(column) * (k / 64) * kScaleTile;
  row *= kTileM, column *= kTileN;
  if (warp == 5) allocate(&place, kColumns);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(full + i, 1), init(empty + i, 1);
    init(&done, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
  }
  fence_before();
  __syncthreads();
  fence_after();
  const uint32_t sums = place;

  int stage = 0, phase = 0;
  const auto advance = [&] {
    if (++stage == kStages) stage = 0, phase ^= 1;
  };
  const auto products = [&](int depth) { return (k - depth < kDepth ? k - depth : kDepth) / 64; };
  if (warp == 4 && leads) {  // loads
    for (int depth = 0; depth < k; depth += kDepth, advance()) {
      const int bytes = products(depth) * kScaleTile;
      wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
      arrive_and_expect(full + stage, kBytesA + kBytesB + 2 * bytes);
      load(a_tile(stage), &map_a, depth / 2, row, full + stage);
      load(b_tile(stage), &map_b, depth / 2, column, full + stage);
      load_bytes(a_scales(stage), scales_a + depth / 64 * kScaleTile, bytes, full + stage);
      load_bytes(b_scales(stage), scales_b + depth / 64 * kScaleTile, bytes, full + stage);
    }
  } else if (warp == 5 && leads) {  // multiplies
    for (int depth = 0; depth < k; depth += kDepth, advance()) {
      wait(full + stage, phase);
      for (int i = 0; i < products(depth); ++i) {
        copy_scales(sums + kScalesA + i * 4, scale_tile(a_scales(stage) + i * kScaleTile));
        copy_scales(sums + kScalesB + i * 4, scale_tile(b_scales(stage) + i * kScaleTile));
      }
      for (int i = 0; i < products(depth); ++i)  // 64 of k are 32 bytes of a row: two units of a descriptor
        multiply(sums, matrix(a_tile(stage)) + i * 2, matrix(b_tile(stage)) + i * 2, sums + kScalesA + i * 4,
                 sums + kScalesB + i * 4, depth + i > 0);
      commit(empty + stage);
    }
    commit(&done);
  }
  __syncwarp();
  if (warp < 4) {  // write
    wait(&done, 0);
    fence_after();
    write_tile(sums, c, row, column, m, n);
    fence_before();
  }
  __syncthreads();
  if (warp == 5) release(sums, kColumns);
}

/// A matrix as TMA sees it: boxes of 256 codes, which make 128 bytes, and so many rows.
CUtensorMap map_of(const void* matrix, int64_t rows, int64_t columns, int box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns / 2), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns / 2)};
  const cuuint32_t box[] = {128, static_cast<cuuint32_t>(box_rows)}, step[] = {1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(matrix), size, pitch, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the matrix");
  return map;
}

extern "C" void launch(const __nv_fp4x2_e2m1* a /*[m,k]*/, const __nv_fp8_e4m3* sfa,
                       const __nv_fp4x2_e2m1* b /*[n,k]*/, const __nv_fp8_e4m3* sfb, bf16* c /*[m,n]*/,
                       int64_t m, int64_t k, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const int64_t tiles = (m + kTileM - 1) / kTileM * ((n + kTileN - 1) / kTileN);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  gemm<<<static_cast<unsigned>(tiles), kThreads, kSharedBytes, stream>>>(
      map_of(a, m, k, kTileM), reinterpret_cast<const uint8_t*>(sfa), map_of(b, n, k, kTileN),
      reinterpret_cast<const uint8_t*>(sfb), c, static_cast<int>(m), static_cast<int>(k),
      static_cast<int>(n));
}
