// Rung 2: one thread multiplies, and the sums lie in tensor memory.
//
// Changed     `tcgen05.mma` instead of `mma.sync`: one thread starts a product of 128 x 128 x 16 from
//             shared memory. The sums stay in 128 columns of tensor memory until the end, when each warp
//             reads its 32 lanes.
// Why         in rung 1 each product passes its operands through registers, and 64 of them hold sums. Here
//             no thread holds either, and the instruction runs at the full rate of the tensor cores.
// Prediction  loading and multiplying still take turns, and three or four blocks on a multiprocessor hide
//             some of it: four to six times rung 1.
// Published   293 TFLOP/s at 4096^3 on a B200 for the same step in ThunderKittens
//             (kernels/gemm/educational_b200, level 06). Not measured here.
//
// Shapes      a [m, k], b [n, k], c [m, n], bf16, row-major.
// Launch      one block of 128 threads a tile of 128 x 128, in bands of kBand tile rows.
// Resources   32 KB of shared memory and 128 columns of tensor memory: four blocks fill its 512.
// Cost        2 m n k FLOPs; m n k / 32 bytes of global loads.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so): rows for TMA start on 16 bytes; m anything,
//             boxes are filled up with zeros.
// Source      PTX ISA 9.0, 9.7.16, "tcgen05". Needs sm_100a. Emulated from the PTX ISA; never run on
//             hardware here.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;

constexpr int kTileM = 128, kTileN = 128, kDepth = 64, kThreads = 128, kBand = 8;  // kBand: tile rows
constexpr int kBytesA = kTileM * 128, kBytesB = kTileN * 128;                      // [B]
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

__global__ void __launch_bounds__(kThreads)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         bf16* __restrict__ c, int m, int k, int n) {
  __shared__ alignas(1024) uint8_t a[kBytesA], b[kBytesB];  // rows of 64 numbers along k
  __shared__ uint64_t full, empty, done;
  __shared__ uint32_t place;
  int row, column;
  place_of(blockIdx.x, (m + kTileM - 1) / kTileM, (n + kTileN - 1) / kTileN, row, column);
  row *= kTileM, column *= kTileN;
  if (threadIdx.x < 32) allocate(&place, kTileN);
  if (threadIdx.x == 0) {
    init(&full, 1), init(&empty, 1), init(&done, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
  }
  fence_before();
  __syncthreads();
  fence_after();
  const uint32_t sums = place;

  if (threadIdx.x == 0) {
    for (int depth = 0, phase = 0; depth < k; depth += kDepth, phase ^= 1) {
      arrive_and_expect(&full, kBytesA + kBytesB);
      load(a, &map_a, depth, row, &full);
      load(b, &map_b, depth, column, &full);
      wait(&full, phase);
#pragma unroll
      for (int i = 0; i < kDepth / 16; ++i)  // 16 of k are 32 bytes of a row: two units of a descriptor
        multiply(sums, matrix(a) + i * 2, matrix(b) + i * 2, depth + i > 0);
      commit(&empty);
      wait(&empty, phase);  // the tiles may be overwritten
    }
    commit(&done);
  }
  // A parity tells two phases apart, no more: who waits here must not miss one, so this barrier has only one.
  wait(&done, 0);
  fence_after();
  write_tile(sums, c, row, column, m, n);
  fence_before();
  __syncthreads();
  if (threadIdx.x < 32) release(sums, kTileN);
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
