// Rung 4: the next tile is multiplied while the last one is written.
//
// Changed     one block a multiprocessor, which takes tile after tile. Two sets of 256 columns take turns:
//             four warps write one while the other is filled. Results go through shared memory and leave
//             by TMA.
// Why         in rung 3 the tensor cores rest while a tile is written and while the next block begins. At
//             k = 4096 a tile of 128 x 256 takes about 9 us of products, and its 64 KB of results wait for
//             nobody now.
// Prediction  1.4x rung 3: the epilogue and the start of a block are hidden, but for the last tile.
// Published   1050 TFLOP/s at 4096^3 on a B200 for the same step in ThunderKittens
//             (kernels/gemm/educational_b200, level 08). Not measured here.
//
// Shapes      a [m, k], b [n, k], c [m, n], bf16, row-major.
// Launch      one block of 192 threads a multiprocessor; tiles of 128 x 256, in bands of kBand tile rows.
// Resources   48 KB of shared memory a stage, four of them, and two boxes of 16 KB; all 512 columns of
//             tensor memory.
// Cost        2 m n k FLOPs; 3 m n k / 128 bytes of global loads.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so): rows for TMA start on 16 bytes; m anything,
//             boxes are filled up with zeros.
// Source      the persistent kernels of CUTLASS (NVIDIA); PTX ISA 9.0, 9.7.16. Needs sm_100a. Emulated
//             from the PTX ISA; never run on hardware here.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;

constexpr int kTileM = 128, kTileN = 256, kDepth = 64, kStages = 4, kThreads = 192,
              kBand = 8;                                                                 // kBand: tile rows
constexpr int kBytesA = kTileM * 128, kBytesB = kTileN * 128, kBoxBytes = kTileM * 128;  // [B]
constexpr int kSharedBytes =
    kStages * (kBytesA + kBytesB) + 2 * kBoxBytes + 1024;  // to begin at a multiple of 1024
// D is f32, A and B are bf16, both read along k (PTX ISA 9.0, 9.7.16.4.2, table 42).
constexpr uint32_t kInstruction = 1 << 4 | 1 << 7 | 1 << 10 | kTileN / 8 << 17 | kTileM / 16 << 24;

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
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], "
      "[%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row)
      : "memory");
}

/// Where an operand lies, for tcgen05.mma (PTX ISA 9.0, 9.7.16.4.1): rows of 128 bytes along k, swizzled as
/// TMA writes them, eight rows after every 1024 bytes. Bits 46 to 48 are always 0b001.
__device__ uint64_t matrix(const void* start) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | uint64_t{1} << 16 |
         uint64_t{1024 / 16} << 32 | uint64_t{1} << 46 | uint64_t{2} << 61;
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

/// sums (+)= a * b, 16 deep. One thread starts it; it runs on its own.
__device__ void multiply(uint32_t sums, uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n"
      "}" ::"r"(sums),
      "l"(a), "l"(b), "r"(kInstruction), "r"(static_cast<int>(add)));
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

/// The copy engine writes a box of 64 columns to `map` at (column, row), and leaves out what lies outside.
__device__ void store(const CUtensorMap* map, const void* from, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(address(from)), "r"(column), "r"(row)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until at most so many of the thread's stores still read shared memory.
template <int kLeft>
__device__ void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
/// Of the four warps that write.
__device__ void writers_meet() { asm volatile("bar.sync 1, 128;" ::: "memory"); }

/// Four warps write a tile: 64 columns at a time from tensor memory to shared memory, swizzled, and from
/// there by TMA. Two boxes take turns.
__device__ void write_tile(uint32_t sums, uint8_t* boxes, const CUtensorMap* map, int row, int column) {
  const int own = threadIdx.x % 128;
  for (int at = 0; at < kTileN; at += 64) {
    uint8_t* const box = boxes + at / 64 % 2 * kBoxBytes;
    if (own == 0) wait_for_stores<1>();  // the one before the last has left its box
    writers_meet();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t r[32];
      read(r, sums + (static_cast<uint32_t>(own / 32 * 32) << 16) + at + half * 32);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        *reinterpret_cast<uint4*>(box + own * 128 + ((half * 4 + i) ^ own % 8) * 16) = rounded(r + i * 8);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees the box
    writers_meet();
    if (own == 0) store(map, box, column + at, row);
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
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         const __grid_constant__ CUtensorMap map_c, int m, int k, int n) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full[kStages], empty[kStages], done[2], written[2];
  __shared__ uint32_t place;
  uint8_t* const stages = shared + (1024 - address(shared) % 1024) % 1024;
  uint8_t* const boxes = stages + kStages * (kBytesA + kBytesB);
  const auto a_tile = [&](int stage) { return stages + stage * (kBytesA + kBytesB); };
  const auto b_tile = [&](int stage) { return a_tile(stage) + kBytesA; };
  const int warp = threadIdx.x / 32;
  const bool leads = threadIdx.x % 32 == 0;
  if (warp == 5) allocate(&place, 2 * kTileN);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(full + i, 1), init(empty + i, 1);
    for (int i = 0; i < 2; ++i) init(done + i, 1), init(written + i, 4);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
  }
  fence_before();
  __syncthreads();
  fence_after();
  const uint32_t sums = place;

  const int rows = (m + kTileM - 1) / kTileM, columns = (n + kTileN - 1) / kTileN;
  int stage = 0, phase = 0;
  const auto advance = [&] {
    if (++stage == kStages) stage = 0, phase ^= 1;
  };
  if (warp == 4 && leads) {  // loads
    for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
      int row, column;
      place_of(tile, rows, columns, row, column);
      for (int depth = 0; depth < k; depth += kDepth, advance()) {
        wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
        arrive_and_expect(full + stage, kBytesA + kBytesB);
        load(a_tile(stage), &map_a, depth, row * kTileM, full + stage);
        load(b_tile(stage), &map_b, depth, column * kTileN, full + stage);
      }
    }
  } else if (warp == 5 && leads) {  // multiplies
    for (int tile = blockIdx.x, turn = 0; tile < rows * columns; tile += gridDim.x, ++turn) {
      const int set = turn % 2;
      wait(written + set, (turn / 2 & 1) ^ 1);  // the tile before the last one has been read
      fence_after();
      for (int depth = 0; depth < k; depth += kDepth, advance()) {
        wait(full + stage, phase);
#pragma unroll
        for (int i = 0; i < kDepth / 16; ++i)  // 16 of k are 32 bytes of a row: two units of a descriptor
          multiply(sums + set * kTileN, matrix(a_tile(stage)) + i * 2, matrix(b_tile(stage)) + i * 2,
                   depth + i > 0);
        commit(empty + stage);
      }
      commit(done + set);
    }
  } else if (warp < 4) {  // write
    for (int tile = blockIdx.x, turn = 0; tile < rows * columns; tile += gridDim.x, ++turn) {
      int row, column;
      place_of(tile, rows, columns, row, column);
      const int set = turn % 2;
      wait(done + set, turn / 2 & 1);
      fence_after();
      write_tile(sums + set * kTileN, boxes, &map_c, row * kTileM, column * kTileN);
      fence_before();
      __syncwarp();
      if (leads) arrive(written + set);
    }
    if (threadIdx.x == 0) wait_for_stores<0>();
  }
  __syncthreads();
  if (warp == 5) release(sums, 2 * kTileN);
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

int multiprocessors() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

extern "C" void launch(const bf16* a /*[m,k]*/, const bf16* b /*[n,k]*/, bf16* c /*[m,n]*/, int64_t m,
                       int64_t k, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  static const int blocks = multiprocessors();
  const int64_t tiles = (m + kTileM - 1) / kTileM * ((n + kTileN - 1) / kTileN);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  gemm<<<static_cast<unsigned>(std::min<int64_t>(tiles, blocks)), kThreads, kSharedBytes, stream>>>(
      map_of(a, m, k, kTileM), map_of(b, n, k, kTileN), map_of(c, m, n, kTileM), static_cast<int>(m),
      static_cast<int>(k), static_cast<int>(n));
}
