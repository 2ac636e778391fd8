// Rung 3: products are on their way during every epilogue; blocks stay, and four queries share the keys.
//
// Changed     a consumer has the products of four queries in two halves. While it adds up the heads of one
//             half, the tensor cores work on the other one. A producer fetches keys, and queries one round
//             ahead; blocks draw their queries from a counter, those with the most keys first. The producer's
//             other three warps fill with -inf what no tile covers.
// Why         in rung 2 a block multiplies or adds up, and only its neighbour may fill the gap. Adding up 64
//             products of a thread takes 128 clocks and more, the products themselves 256. Four queries halve
//             the bytes for each logit: 16 a clock at full rate.
// Prediction  1.6x rung 2, about 1000 TFLOP/s: one half in eight is still added up with nothing on its way, a
//             round begins and ends with an empty pipeline, and the chip meets its power limit.
// Came        253 us on an H100, 963 TFLOP/s, 1.06 times the rung before. 539 % of the native baseline, 1.11
//             times DeepGEMM.
//
// Shapes      q [s, 64, 128], k [n, 128], e4m3; sk [n], w [s, 64], fp32; starts, ends [s], i32; logits [s,
//             n], fp32; all row-major. starts <= j < ends is the window of a row, cut to 0 <= j < n.
// Launch      one block of 384 threads per multiprocessor; rounds of four queries, tiles of 128 keys.
// Resources   232 registers a consumer, 128 of them products and 64 weights, 40 a producer; 163 KB of shared
//             memory: two places for queries, six for keys; 4 bytes of workspace.
// Cost        16576 FLOPs for each pair of a tile that a window touches; 32 bytes of keys from the L2 cache
//             for each of them; 4 s n bytes written.
// Divides     s and n anything; what lies outside counts as zero.
// Source      halves in turns: FlashAttention-3, J. Shah et al. (2024), overlap within a warp group. Needs
//             sm_90a.
#include <cuda.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

using e4m3 = __nv_fp8_e4m3;

constexpr int kHeads = 64, kDim = 128, kKeys = 128, kQueries = 4, kStages = 6, kSlots = 2;
constexpr int kTogether = 4;  // tiles of keys without a gap between their products
constexpr int kConsumers = 2, kThreads = 128 * (1 + kConsumers), kFillers = 96;
constexpr int kKeyBytes = kKeys * kDim, kQueryBytes = kQueries * kHeads * kDim;
constexpr int kSharedBytes =
    kSlots * kQueryBytes + kStages * kKeyBytes + 1024;  // to begin at a multiple of 1024

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
/// The same for bytes in one line: 16 at the least, in multiples of 16.
__device__ void load_line(void* to, const void* from, int bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(address(barrier))
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
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
/// Until no more than so many of the latest groups of products are on their way; d belongs to an earlier one.
/// It is an operand, so that no use of it moves up.
template <int kOnTheirWay>
__device__ void wait_for_products(float (&d)[64]) {
  asm volatile("wgmma.wait_group.sync.aligned %64;"
               : D16(0), D16(16), D16(32), D16(48)
               : "n"(kOnTheirWay)
               : "memory");
}
#undef D16
#undef D4

/// The window of a query, cut to the keys that there are; empty beyond the last query.
__device__ int2 window_of(const int* __restrict__ starts, const int* __restrict__ ends, int query, int s,
                          int n) {
  return query < s ? make_int2(max(starts[query], 0), min(ends[query], n)) : make_int2(0, 0);
}
/// The tiles of keys, from x on and before y, that the windows of a round touch; y = x if all are empty.
__device__ int2 tiles_of(const int2 (&windows)[kQueries], int n) {
  int first = n, last = 0;
#pragma unroll
  for (const int2 window : windows)
    if (window.x < window.y) first = min(first, window.x), last = max(last, window.y);
  return last > 0 ? make_int2(first / kKeys, (last + kKeys - 1) / kKeys) : make_int2(0, 0);
}
/// What consumers are told about a round.
struct Round {
  int first_query;  // -1: there is no more
  int2 tiles, windows[kQueries];
  alignas(16) float weights[kQueries][kHeads];  // for the copy engine
};

__global__ void __launch_bounds__(kThreads, 1)
    indexer(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
            const float* __restrict__ sk, const float* __restrict__ w, const int* __restrict__ starts,
            const int* __restrict__ ends, float* __restrict__ logits, int s, int n, int* next) {
  extern __shared__ uint8_t shared[];
  __shared__ __align__(16) Round rounds[kSlots];
  __shared__ uint64_t full_q[kSlots], empty_q[kSlots], full[kStages], empty[kStages];
  uint8_t* const aligned = shared + (1024 - address(shared) % 1024) % 1024;
  const auto heads = [&](int slot) { return aligned + slot * kQueryBytes; };
  const auto keys = [&](int stage) { return aligned + kSlots * kQueryBytes + stage * kKeyBytes; };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kSlots; ++i) init(full_q + i, 1), init(empty_q + i, 4 * kConsumers);
    for (int i = 0; i < kStages; ++i) init(full + i, 1), init(empty + i, kConsumers);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  int stage = 0, phase = 0, slot = 0, slot_phase = 0;
  const auto next_stage = [&] {
    if (++stage == kStages) stage = 0, phase ^= 1;
  };
  const auto next_slot = [&] {
    if (++slot == kSlots) slot = 0, slot_phase ^= 1;
  };
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);  // the compiler sees that a warp's lanes agree
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {  // the producer
      const int count = (s + kQueries - 1) / kQueries;
      for (int i = blockIdx.x; i < count;) {
        const int drawn = atomicAdd(next, 1);          // used only when this round's keys are on their way
        const int query = (count - 1 - i) * kQueries;  // the last ones see the most keys
        int2 windows[kQueries];
        for (int j = 0; j < kQueries; ++j) windows[j] = window_of(starts, ends, query + j, s, n);
        const int2 tiles = tiles_of(windows, n);
        if (tiles.x < tiles.y) {
          wait(empty_q + slot, slot_phase ^ 1);
          Round& round = rounds[slot];
          round.first_query = query, round.tiles = tiles;
          for (int j = 0; j < kQueries; ++j) round.windows[j] = windows[j];
          const int weight_bytes = min(kQueries, s - query) * kHeads * static_cast<int>(sizeof(float));
          arrive_and_expect(full_q + slot, kQueryBytes + weight_bytes);
          load(heads(slot), &map_q, query * kHeads, full_q + slot);
          load_line(round.weights, w + static_cast<int64_t>(query) * kHeads, weight_bytes, full_q + slot);
          next_slot();
        }
        for (int tile = tiles.x; tile < tiles.y; ++tile) {
          wait(empty + stage, phase ^ 1);
          arrive_and_expect(full + stage, kKeyBytes);
          load(keys(stage), &map_k, tile * kKeys, full + stage);
          next_stage();
        }
        i = gridDim.x + drawn;
      }
      wait(empty_q + slot, slot_phase ^ 1);
      rounds[slot].first_query = -1;
      arrive(full_q + slot);
    } else if (threadIdx.x >= 32) {  // three warps fill rows: what lies outside of their round's tiles
      for (int row = blockIdx.x; row < s; row += gridDim.x) {
        int2 windows[kQueries];
        for (int j = 0; j < kQueries; ++j)
          windows[j] = window_of(starts, ends, row / kQueries * kQueries + j, s, n);
        const int2 tiles = tiles_of(windows, n);
        float* const to = logits + static_cast<int64_t>(row) * n;
        const int me = threadIdx.x - 32;
        for (int key = me; key < tiles.x * kKeys; key += kFillers) to[key] = -INFINITY;
        for (int key = tiles.y * kKeys + me; key < n; key += kFillers) to[key] = -INFINITY;
      }
    }
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  // A lane has pairs of heads of two keys: key lane / 4 of its warp's sixteen, and the one 8 below. Four
  // neighbours share them. Each of these ends with one of four sums of a half: two queries, two keys.
  const int consumer = group - 1, me = threadIdx.x % 128, lane = me % 32, near = lane % 4;
  const bool second_query = near % 2, second_key = near / 2;
  const int my_key = consumer * 64 + me / 32 * 16 + second_key * 8 + lane / 4;  // in the tile
  const uint64_t my_keys = matrix(keys(0) + consumer * 64 * kDim), all_heads = matrix(heads(0));

  float product[2][64], weights[kQueries][16];
  const auto ask_for = [&](int half) {
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < kDim / 32; ++i)  // in units of 16 bytes
      multiply(product[half], my_keys + stage * kKeyBytes / 16 + i * 2,
               all_heads + slot * kQueryBytes / 16 + half * 128 * kDim / 16 + i * 2, i > 0);
    commit();
  };
  for (;;) {
    wait(full_q + slot, slot_phase);
    const Round& round = rounds[slot];
    const int query = round.first_query;
    if (query < 0) break;
    const int2 tiles = round.tiles;
    int2 window[2];  // of this lane's query of either half
#pragma unroll
    for (int half = 0; half < 2; ++half) window[half] = round.windows[half * 2 + second_query];
#pragma unroll
    for (int i = 0; i < kQueries; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int from = query + i < s ? i : 0;  // beyond the last query: products that nobody stores
        const float2 pair = *reinterpret_cast<const float2*>(round.weights[from] + j * 8 + near * 2);
        weights[i][j * 2] = pair.x, weights[i][j * 2 + 1] = pair.y;
      }
    float* const to = logits + static_cast<int64_t>(query + second_query) * n;
    int key = tiles.x * kKeys + my_key;
    float scale = key < n ? sk[key] : 0;
    const auto next_key = [&] { key += kKeys, scale = key < n ? sk[key] : 0; };

    /// Adds up the heads of a half's products, and writes a logit.
    const auto finish = [&](int half) {
      float sum[2][2] = {};
#pragma unroll
      for (int i = 0; i < 64; ++i)  // two heads of one key, two of the other, then the next eight heads
        sum[i / 32][i / 2 % 2] +=
            fmaxf(product[half][i], 0) * weights[half * 2 + i / 32][i % 32 / 4 * 2 + i % 2];
      float of_query[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        of_query[i] = (second_query ? sum[1][i] : sum[0][i]) +
                      __shfl_xor_sync(~0u, second_query ? sum[0][i] : sum[1][i], 1);
      const float total = (second_key ? of_query[1] : of_query[0]) +
                          __shfl_xor_sync(~0u, second_key ? of_query[0] : of_query[1], 2);
      if (query + half * 2 + second_query < s && key < n)
        to[static_cast<int64_t>(half) * 2 * n + key] =
            key >= window[half].x && key < window[half].y ? total * scale : -INFINITY;
    };

    /// Some tiles of keys: only the last half of the last one is added up with nothing on its way. ptxas
    /// follows products in registers only as far as a run of instructions without a loop, so this is
    /// unrolled.
    const auto take = [&](auto constant) {
      constexpr int kTiles = decltype(constant)::value;
      wait(full + stage, phase);
      ask_for(0);
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        ask_for(1);
        wait_for_products<1>(product[0]);
        finish(0);
        const int before = stage;
        next_stage();
        if (i + 1 < kTiles) {
          wait(full + stage, phase);
          ask_for(0);
          wait_for_products<1>(product[1]);
        } else {
          wait_for_products<0>(product[1]);
        }
        if (me == 0) arrive(empty + before);  // for all four warps: their products are one
        finish(1);
        next_key();
      }
    };
    bool alone = consumer == 1;  // so that the two end their runs at different tiles
    for (int left = tiles.y - tiles.x; left > 0; alone = false) {
      if (left >= kTogether && !alone)
        take(std::integral_constant<int, kTogether>()), left -= kTogether;
      else
        take(std::integral_constant<int, 1>()), --left;
    }
    __syncwarp();
    if (lane == 0) arrive(empty_q + slot);
    next_slot();
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

extern "C" size_t workspace_bytes(int64_t /*s*/, int64_t /*n*/) { return sizeof(int); }

extern "C" void launch(const e4m3* q /*[s,64,128]*/, const e4m3* k /*[n,128]*/, const float* sk /*[n]*/,
                       const float* w /*[s,64]*/, const int* starts /*[s]*/, const int* ends /*[s]*/,
                       float* logits /*[s,n]*/, int64_t s, int64_t n, void* workspace, cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  int* const next =
      static_cast<int*>(workspace);  // the first round that no block has taken, less one per block
  cudaMemsetAsync(next, 0, sizeof(int), stream);
  const int64_t count = (s + kQueries - 1) / kQueries,
                grid = count < multiprocessors ? count : multiprocessors;
  cudaFuncSetAttribute(indexer, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  indexer<<<static_cast<unsigned>(grid), kThreads, kSharedBytes, stream>>>(
      map_of(q, s * kHeads, kQueries * kHeads), map_of(k, n, kKeys), sk, w, starts, ends, logits,
      static_cast<int>(s), static_cast<int>(n), next);
}
