// Rung 2: WGMMA and TMA under the same epilogue.
//
// Changed     tiles of 128 x 256. One warp group has TMA fetch boxes of both operands into a ring of stages;
//             two consumers multiply 64 x 256 each by wgmma and end with a pair for each row.
// Why         mma.sync reaches half of the rate, and in rung 1 all warps wait for every step. Here memory is
//             four stages ahead. A tile twice as wide leaves half as many pairs.
// Prediction  2.5x rung 1: 600 TFLOP/s, as rung 6 of gemm_bf16. At the end of each tile the tensor cores wait
//             for the epilogue and for the first stage of the next block.
//
// Shapes      x [t, h], w [v, h], bf16, row-major; target [t], int32; loss, lse [t], fp32.
// Launch      one block of 384 threads a tile of 128 x 256, in bands of tile rows. Then a thread a row and
//             part.
// Resources   128 sums a thread of a consumer; 193 KB of shared memory: four stages; workspace: a pair for
//             each row and tile, and t floats.
// Cost        2 t h v + 7 t v FLOPs; 3 t h v / 128 bytes of global loads; t v / 32 bytes of pairs written.
// Divides     h % 8 == 0 (the problem says so): rows for TMA start on 16 bytes; t and v anything.
// Source      warp specialisation as in CUTLASS 3 (NVIDIA, 2022). Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;

constexpr int kTileM = 128, kTileN = 256, kDepth = 64, kStages = 4, kConsumers = 2;
constexpr int kThreads = 128 * (1 + kConsumers);
constexpr int kBand = 16;  // tile rows
constexpr int kBytesX = kTileM * kDepth * sizeof(bf16), kBytesW = kTileN * kDepth * sizeof(bf16);  // [B]
constexpr int kSharedBytes = kStages * (kBytesX + kBytesW);
constexpr float kNone = -1e30f;  // less than every logit, and its difference to itself is a number
constexpr float kLog2E = 1.44269504f;

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
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row)
      : "memory");
}

/// Where a matrix lies, for wgmma: rows of 128 bytes, swizzled as TMA writes them, eight rows after eight.
__device__ uint64_t matrix(const void* start) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | static_cast<uint64_t>(1024 / 16) << 32 |
         uint64_t{1} << 62;
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
      "%128, %129, p, 1, 1, 0, 0;\n"  // both along the depth
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

/// A maximum, and the sum of exponentials of differences to it.
struct Pair {
  float maximum, sum;
};
__device__ float power(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
__device__ Pair merge(Pair a, Pair b) {
  const float maximum = fmaxf(a.maximum, b.maximum);
  return {maximum,
          a.sum * power((a.maximum - maximum) * kLog2E) + b.sum * power((b.maximum - maximum) * kLog2E)};
}
/// The result for the four lanes that share a row.
template <class Reduce>
__device__ float across_four(float value, Reduce reduce) {
  value = reduce(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return reduce(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

/// Classes that do not exist count as kNone. `left`: how many of the tile's columns exist.
__device__ void mask(float (&d)[128], int left) {
#pragma unroll
  for (int i = 0; i < 128; ++i)
    if (i / 4 * 8 + i % 2 + threadIdx.x % 4 * 2 >= left) d[i] = kNone;
}

/// Stores the logits of the targets that lie in this tile: few warps have one. `mine`: the columns of the
/// targets of a lane's two rows, in the tile.
__device__ void pick(const float (&d)[128], const int (&mine)[2], float* chosen) {
  const auto here = [&](int half) { return static_cast<unsigned>(mine[half]) < kTileN; };
  if (!__any_sync(0xffffffffu, here(0) || here(1))) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int at =
        mine[half] - static_cast<int>(threadIdx.x % 4) * 2;  // 0 or 1 from a multiple of 8: it is ours
    float logit = 0;
#pragma unroll
    for (int j = 0; j < kTileN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (at == j * 8 + e) logit = d[j * 4 + half * 2 + e];
    if (here(half) && at >= 0 && at % 8 < 2) chosen[half * 8] = logit;
  }
}

/// What 256 logits of each of a lane's two rows leave. The four lanes of a row get the same.
__device__ Pair reduce_row(const float (&d)[128], int half) {
  float maximum[2] = {kNone, kNone}, sum[2] = {};
#pragma unroll
  for (int j = 0; j < kTileN / 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) maximum[e] = fmaxf(maximum[e], d[j * 4 + half * 2 + e]);
  const float all = across_four(fmaxf(maximum[0], maximum[1]), [](float a, float b) { return fmaxf(a, b); });
  const float offset = -all * kLog2E;
#pragma unroll
  for (int j = 0; j < kTileN / 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) sum[e] += power(fmaf(d[j * 4 + half * 2 + e], kLog2E, offset));
  return {all, across_four(sum[0] + sum[1], [](float a, float b) { return a + b; })};
}

/// The columns of the targets of rows `row` and `row` + 8, counted from `first`; -1 where there is none.
__device__ void look_up(int (&mine)[2], const int32_t* target, int row, int first, int t, int v) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int at = row + half * 8 < t ? target[row + half * 8] : -1;
    mine[half] = at >= 0 && at < v ? at - first : -1;
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    product(const __grid_constant__ CUtensorMap map_x, const __grid_constant__ CUtensorMap map_w,
            const int32_t* __restrict__ target, Pair* __restrict__ pairs, float* __restrict__ chosen, int t,
            int h, int v) {
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ uint64_t full[kStages], empty[kStages];
  const auto x_tile = [&](int stage) { return stages + stage * (kBytesX + kBytesW); };
  const auto w_tile = [&](int stage) { return x_tile(stage) + kBytesX; };
  int row, column;
  place_of(blockIdx.x, (t + kTileM - 1) / kTileM, (v + kTileN - 1) / kTileN, row, column);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(full + i, 1), init(empty + i, kConsumers);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
  }
  __syncthreads();

  int stage = 0, phase = 0;
  const auto advance = [&] {
    if (++stage == kStages) stage = 0, phase ^= 1;
  };
  const int group = threadIdx.x / 128;
  if (group == 0) {  // the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (int depth = 0; depth < h; depth += kDepth, advance()) {
        wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
        arrive_and_expect(full + stage, kBytesX + kBytesW);
        load(x_tile(stage), &map_x, depth, row * kTileM, full + stage);
        load(w_tile(stage), &map_w, depth, column * kTileN, full + stage);
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int consumer = group - 1, me = threadIdx.x % 128, lane = threadIdx.x % 32;
    const int my_row = row * kTileM + consumer * 64 + me / 32 * 16 + lane / 4;  // and the row 8 below
    int mine[2], before = 0;  // before: the stage of the last step
    look_up(mine, target, my_row, column * kTileN, t, v);
    float d[128];
    for (int depth = 0; depth < h; depth += kDepth, advance()) {
      wait(full + stage, phase);
      begin_multiplying();
#pragma unroll
      for (int i = 0; i < kDepth / 16; ++i)  // 16 of the depth are 32 bytes of a row
        multiply(d, matrix(x_tile(stage) + consumer * 8192 + i * 32), matrix(w_tile(stage) + i * 32),
                 depth + i > 0);
      commit();
      wait_for_products<1>();                            // those of the step before
      if (depth > 0 && me == 0) arrive(empty + before);  // for four warps: their products are one
      before = stage;
    }
    wait_for_products<0>();

    if (v - column * kTileN < kTileN) mask(d, v - column * kTileN);
    pick(d, mine, chosen + my_row);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Pair pair = reduce_row(d, half);
      if (lane % 4 == 0 && my_row + half * 8 < t)
        pairs[static_cast<int64_t>(column) * t + my_row + half * 8] = pair;
    }
  }
}

constexpr int kRows = 32, kParts = 8;  // of a block that merges

__global__ void merge_tiles(const Pair* __restrict__ pairs, const float* __restrict__ chosen,
                            const int32_t* __restrict__ target, float* __restrict__ loss,
                            float* __restrict__ lse, int64_t t, int64_t v, int64_t tiles) {
  __shared__ Pair of_parts[kParts][kRows];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x;
  Pair pair{kNone, 0};
  if (row < t)
    for (int64_t tile = threadIdx.y; tile < tiles; tile += kParts) pair = merge(pair, pairs[tile * t + row]);
  of_parts[threadIdx.y][threadIdx.x] = pair;
  __syncthreads();
  if (threadIdx.y > 0 || row >= t) return;
  for (int i = 1; i < kParts; ++i) pair = merge(pair, of_parts[i][threadIdx.x]);
  const float total = pair.maximum + logf(pair.sum);
  lse[row] = total;
  loss[row] = target[row] >= 0 && target[row] < v ? total - chosen[row] : 0.0f;
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

int64_t tiles_of(int64_t v) { return (v + kTileN - 1) / kTileN; }

extern "C" size_t workspace_bytes(int64_t t, int64_t /*h*/, int64_t v) {
  return static_cast<size_t>(t) * (static_cast<size_t>(tiles_of(v)) * sizeof(Pair) + sizeof(float));
}

extern "C" void launch(const bf16* x /*[t,h]*/, const bf16* w /*[v,h]*/, const int32_t* target /*[t]*/,
                       float* loss /*[t]*/, float* lse /*[t]*/, int64_t t, int64_t h, int64_t v,
                       void* workspace, cudaStream_t stream) {
  const int64_t tiles = tiles_of(v);
  Pair* const pairs = static_cast<Pair*>(workspace);
  float* const chosen = reinterpret_cast<float*>(pairs + tiles * t);
  const int64_t all = (t + kTileM - 1) / kTileM * tiles;
  cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  product<<<static_cast<unsigned>(all), kThreads, kSharedBytes, stream>>>(
      map_of(x, t, h, kTileM), map_of(w, v, h, kTileN), target, pairs, chosen, static_cast<int>(t),
      static_cast<int>(h), static_cast<int>(v));
  merge_tiles<<<static_cast<unsigned>((t + kRows - 1) / kRows), dim3(kRows, kParts), 0, stream>>>(
      pairs, chosen, target, loss, lse, t, v, tiles);
}
