// Rung 2: TMA and WGMMA, and only tiles that a window touches.
//
// Changed     the heads of two queries are the 128 columns of wgmma, keys are its rows. A block stays with
//             its queries and goes along the keys of their windows, tile after tile through a ring; what is
//             outside of these tiles it fills with -inf at the start. Blocks with many keys come first.
// Why         mma.sync reaches half of the tensor cores' rate at best, and its operands pass the registers.
// Prediction  2.5x rung 1, 600 TFLOP/s. Two blocks share a multiprocessor, so that one multiplies while the
//             other one adds up heads; but both fetch 16 KB of keys for 256 logits, 32 bytes a clock at full
//             rate, which is more than the L2 cache gives.
// Came        269 us on an H100, 905 TFLOP/s, 5.06 times the rung before. 506 % of the native baseline.
//
// Shapes      q [s, 64, 128], k [n, 128], e4m3; sk [n], w [s, 64], fp32; starts, ends [s], i32; logits [s,
//             n], fp32; all row-major. starts <= j < ends is the window of a row, cut to 0 <= j < n.
// Launch      one block of 256 threads for two queries, two blocks a multiprocessor; tiles of 128 keys.
// Resources   120 registers a thread: 64 products, 32 weights; 65 KB of shared memory: queries, three stages.
// Cost        16576 FLOPs for each pair of a tile that a window touches; 64 bytes of keys from the L2 cache
//             for each of them; 4 s n bytes written.
// Divides     s and n anything; what lies outside counts as zero.
// Source      queries' heads as columns: DeepGEMM (2025). Needs sm_90a.
#include <cuda.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

using e4m3 = __nv_fp8_e4m3;

constexpr int kHeads = 64, kDim = 128, kKeys = 128, kQueries = 2, kStages = 3, kThreads = 256;
constexpr int kTileBytes = 128 * kDim;                           // 128 keys, or the heads of two queries
constexpr int kSharedBytes = (1 + kStages) * kTileBytes + 1024;  // to begin at a multiple of 1024

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
/// The copy engine fetches the box of `map` from this row on, fills with zeros what lies outside, and signals
/// the barrier.
__device__ void load(void* to, const CUtensorMap* map, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], "
      "[%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(0), "r"(row)
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
/// d = a * b, or d += a * b: 64 keys x 128 heads, 32 deep, by four warps. Starts it, does not wait.
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
      "%64, %65, p, 1, 1;\n"
      "}"
      : D16(0), D16(16), D16(32), D16(48)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
#undef D16
#undef D4
__device__ void begin_multiplying() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ void wait_for_products() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

/// The tiles of keys, from x on and before y, that the windows of some queries touch; y = x if all are empty.
__device__ int2 tiles_of(const int* __restrict__ starts, const int* __restrict__ ends, int query, int s,
                         int n) {
  int first = n, last = 0;
  for (int row = query; row < min(query + kQueries, s); ++row) {
    const int start = max(starts[row], 0), end = min(ends[row], n);
    if (start < end) first = min(first, start), last = max(last, end);
  }
  return last > 0 ? make_int2(first / kKeys, (last + kKeys - 1) / kKeys) : make_int2(0, 0);
}

__global__ void __launch_bounds__(kThreads, 2)
    indexer(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
            const float* __restrict__ sk, const float* __restrict__ w, const int* __restrict__ starts,
            const int* __restrict__ ends, float* __restrict__ logits, int s, int n) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full_q, full[kStages];
  uint8_t* const heads = shared + (1024 - address(shared) % 1024) % 1024;
  const auto keys = [&](int stage) { return heads + (1 + stage) * kTileBytes; };
  if (threadIdx.x == 0) {
    init(&full_q, 1);
    for (int i = 0; i < kStages; ++i) init(full + i, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  const int query = (gridDim.x - 1 - blockIdx.x) * kQueries;  // the last ones see the most keys
  const int2 tiles = tiles_of(starts, ends, query, s, n);
  const auto fetch = [&](int tile, int stage) {
    arrive_and_expect(full + stage, kTileBytes);
    load(keys(stage), &map_k, tile * kKeys, full + stage);
  };
  if (threadIdx.x == 0 && tiles.x < tiles.y) {
    arrive_and_expect(&full_q, kTileBytes);
    load(heads, &map_q, query * kHeads, &full_q);
    for (int i = 0; i < kStages && tiles.x + i < tiles.y; ++i) fetch(tiles.x + i, i);
  }
  for (int row = query; row < min(query + kQueries, s); ++row) {
    float* const to = logits + static_cast<int64_t>(row) * n;
    for (int key = threadIdx.x; key < tiles.x * kKeys; key += kThreads) to[key] = -INFINITY;
    for (int key = tiles.y * kKeys + threadIdx.x; key < n; key += kThreads) to[key] = -INFINITY;
  }
  if (tiles.x == tiles.y) return;

  // A lane has pairs of heads of two keys: key lane / 4 of its warp's sixteen, and the one 8 below. Four
  // neighbours share them. Each of these ends with one of four sums: two queries, two keys.
  const int lane = threadIdx.x % 32, near = lane % 4;
  const bool second_query = near % 2, second_key = near / 2;
  float weights[kQueries][16];
#pragma unroll
  for (int i = 0; i < kQueries; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float2 pair = *reinterpret_cast<const float2*>(
          w + static_cast<int64_t>(min(query + i, s - 1)) * kHeads + j * 8 + near * 2);
      weights[i][j * 2] = pair.x, weights[i][j * 2 + 1] = pair.y;
    }
  const int row = query + second_query;
  const int start = row < s ? starts[row] : 0, end = row < s ? ends[row] : 0;
  const int my_key = threadIdx.x / 32 * 16 + second_key * 8 + lane / 4;  // in the tile
  float* const to = logits + static_cast<int64_t>(row) * n;

  wait(&full_q, 0);
  const uint64_t my_keys = matrix(keys(0) + threadIdx.x / 128 * 64 * kDim), all_heads = matrix(heads);
  int stage = 0, phase = 0;
  for (int tile = tiles.x; tile < tiles.y; ++tile) {
    const int key = tile * kKeys + my_key;
    const float scale = key < n ? sk[key] : 0;
    float product[64];
    wait(full + stage, phase);
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < kDim / 32; ++i)  // in units of 16 bytes
      multiply(product, my_keys + stage * kTileBytes / 16 + i * 2, all_heads + i * 2, i > 0);
    commit();
    wait_for_products();
    __syncthreads();  // all have used the keys
    if (threadIdx.x == 0 && tile + kStages < tiles.y) fetch(tile + kStages, stage);

    float sum[kQueries][2] = {};
#pragma unroll
    for (int i = 0; i < 64; ++i)  // two heads of one key, two of the other, then the next eight heads
      sum[i / 32][i / 2 % 2] += fmaxf(product[i], 0) * weights[i / 32][i % 32 / 4 * 2 + i % 2];
    float of_query[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      of_query[i] = (second_query ? sum[1][i] : sum[0][i]) +
                    __shfl_xor_sync(~0u, second_query ? sum[0][i] : sum[1][i], 1);
    const float total = (second_key ? of_query[1] : of_query[0]) +
                        __shfl_xor_sync(~0u, second_key ? of_query[0] : of_query[1], 2);
    if (row < s && key < n) to[key] = key >= start && key < end ? total * scale : -INFINITY;
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
}

/// A matrix with rows of 128 bytes as TMA sees it: boxes of so many rows.
CUtensorMap map_of(const e4m3* matrix, int64_t rows, int box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {kDim, static_cast<cuuint64_t>(rows)}, pitch[] = {kDim};
  const cuuint32_t box[] = {kDim, static_cast<cuuint32_t>(box_rows)}, step[] = {1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<e4m3*>(matrix), size, pitch, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the matrix");
  return map;
}

extern "C" void launch(const e4m3* q /*[s,64,128]*/, const e4m3* k /*[n,128]*/, const float* sk /*[n]*/,
                       const float* w /*[s,64]*/, const int* starts /*[s]*/, const int* ends /*[s]*/,
                       float* logits /*[s,n]*/, int64_t s, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  cudaFuncSetAttribute(indexer, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  indexer<<<static_cast<unsigned>((s + kQueries - 1) / kQueries), kThreads, kSharedBytes, stream>>>(
      map_of(q, s * kHeads, kQueries * kHeads), map_of(k, n, kKeys), sk, w, starts, ends, logits,
      static_cast<int>(s), static_cast<int>(n));
}
