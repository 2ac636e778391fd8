// Rung 3: the longest rows first, and the pipeline runs on from tile to tile.
//
// Changed     blocks stay. A producer warp draws numbers from a counter and walks with a cursor over the
//             tiles in the order of their lengths: last rows of all segments first. Scores of the next step
//             start before this softmax, across the borders of tiles, too; queries have two places.
// Why         segments differ, and causal rows differ: in rung 2 some multiprocessors end long before others,
//             and each block waits for its first keys and its last store.
// Prediction  1.5x rung 2, near FlashAttention-3.
// Came        402 us on an H100, 455.63 TFLOP/s, 1.11 times the rung before. 2340 % of the native baseline.
//
// Shapes      q, o [total, hq, d], k, v [total, hk, d], bf16; cu_seqlens [segments + 1], i32.
// Launch      one block of 384 threads per multiprocessor; tiles of 128 rows: as many positions times as many
//             heads of a group as its size has factors of two.
// Resources   232 registers per consumer, 40 a producer; up to 225 KB of shared memory; 4 bytes of workspace.
// Cost        4 hq d FLOPs for each query and key that it sees; masked parts of diagonal tiles besides.
// Divides     d is 64 or 128 and hk divides hq (the problem says so); lengths anything, also 0.
// Source      packed heads and tile shapes: FlashAttention-3, J. Shah et al. (2024). Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

template <int kDepth, int kSlots>
struct Plan {
  static constexpr int kDim = kDepth, kConsumers = 2, kRows = 64 * kConsumers, kKeys = 128;
  static constexpr int kStages = kSlots, kStagesQ = 2, kPanels = kDim / 64, kThreads = 128 * (1 + kConsumers);
  static constexpr int kBox = 64 * 128;          // [B]: 64 rows of 64 columns
  static constexpr int kKeyPanel = kKeys * 128;  // [B]
  static constexpr int kBytesQ = kConsumers * kPanels * kBox, kBytesK = kPanels * kKeyPanel;
  static constexpr int kTiles = kStagesQ * kBytesQ + kStages * 2 * kBytesK;
  static constexpr int kShared = kTiles + kBytesQ + 1024;  // the last part: results on their way out
};

/// 128 rows: positions first, first + 1, ... of a segment, each with the heads of one pack.
struct Tile {
  int start, length;  // the segment; length -1: there are no more tiles
  int first, pack;
};

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
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
/// The box of `map` at (column, head, token); past the last token, zeros.
__device__ void load(void* to, const CUtensorMap* map, int column, int head, int token, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5}], [%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(head), "r"(token)
      : "memory");
}

__device__ uint64_t matrix(const void* start, int leading, int stride) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | static_cast<uint64_t>(leading / 16) << 16 |
         static_cast<uint64_t>(stride / 16) << 32 | uint64_t{1} << 62;
}
__device__ void begin_multiplying() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kOnTheirWay>
__device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOnTheirWay) : "memory");
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
#define LIST32                                                             \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LIST64                                                                         \
  LIST32                                                                               \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/// Scores: 64 rows x 128 keys, 16 deep; queries and keys lie in shared memory, both along the depth.
__device__ void multiply_scores(float (&d)[64], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LIST64 "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16), D16(32), D16(48)
      : "l"(q), "l"(k), "r"(static_cast<int>(add)));
}
/// Values: 64 rows x 64 or 128 columns, 16 keys deep; the weights come from registers.
__device__ void multiply_values(float (&d)[32], const uint32_t* p, uint64_t v, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LIST32
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
      : D16(0), D16(16)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v), "r"(static_cast<int>(add)));
}
__device__ void multiply_values(float (&d)[64], const uint32_t* p, uint64_t v, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LIST64
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : D16(0), D16(16), D16(32), D16(48)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v), "r"(static_cast<int>(add)));
}

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ uint32_t pair(float a, float b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&both);
}

/// The running softmax of a lane's two rows, lane / 4 and 8 below.
template <int kScores>
struct Softmax {
  float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};

  /// Scores become weights; `shrink`: what earlier weights are to be multiplied by.
  __device__ void take(float (&s)[kScores], float factor, float (&shrink)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = maximum[half];
#pragma unroll
      for (int j = 0; j < kScores / 4; ++j)
        top = fmaxf(top, fmaxf(s[j * 4 + half * 2], s[j * 4 + half * 2 + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
      const float zero = top == -INFINITY ? 0.0f : top * factor;  // no key of this row is visible yet
      shrink[half] = power_of_two(maximum[half] * factor - zero);
      maximum[half] = top;
      float here = 0;
#pragma unroll
      for (int j = 0; j < kScores / 4; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& x = s[j * 4 + half * 2 + i];
          x = power_of_two(fmaf(x, factor, -zero));
          here += x;
        }
      sum[half] = sum[half] * shrink[half] + here;
    }
  }
};

/// Keys that a query does not see: those behind it. `query`: the positions of a lane's two rows.
template <int kScores>
__device__ void mask(float (&s)[kScores], int first_key, const int (&query)[2]) {
#pragma unroll
  for (int j = 0; j < kScores / 4; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (first_key + j * 8 + threadIdx.x % 4 * 2 + i % 2 > query[i / 2]) s[j * 4 + i] = -INFINITY;
}
template <int kScores>
__device__ void to_weights(uint32_t (&p)[kScores / 2], const float (&s)[kScores]) {
#pragma unroll
  for (int j = 0; j < kScores / 2; ++j) p[j] = pair(s[j * 2], s[j * 2 + 1]);
}

/// All tiles in an order that every block knows: some packs of heads after others; within them the rows at
/// the ends of long segments first. Draws grow, so the cursor only moves on. All lanes of a warp call it
/// together.
struct Cursor {
  const int* offsets;
  int segments, positions, packs, at_once;  // positions of a tile; packs of heads, and how many at a time
  int begin = 0, level = -1, base = 0, before = 0, top = -1;

  __device__ void find_longest() {
    for (int i = threadIdx.x % 32; i < segments; i += 32) top = max(top, offsets[i + 1] - offsets[i]);
    top = (static_cast<int>(__reduce_max_sync(0xffffffffu, top)) + positions - 1) / positions - 1;
    level = top;
  }
  /// Tile number `draw` of the order. A step looks at 32 segments: which of them have rows of this level?
  __device__ Tile find(int draw) {
    const int lane = threadIdx.x % 32;
    while (begin < packs) {
      const int packs_here = min(at_once, packs - begin), i = base + lane;
      const int start = i < segments ? offsets[i] : 0, length = i < segments ? offsets[i + 1] - start : 0;
      const unsigned have = __ballot_sync(0xffffffffu, length > level * positions);
      const int here = __popc(have) * packs_here, index = draw - before;
      if (index < here) {
        const bool mine = (have >> lane & 1) && __popc(have & ((1u << lane) - 1)) == index / packs_here;
        const int owner = __ffs(__ballot_sync(0xffffffffu, mine)) - 1;
        return {__shfl_sync(0xffffffffu, start, owner), __shfl_sync(0xffffffffu, length, owner),
                level * positions, begin + index % packs_here};
      }
      before += here, base += 32;
      if (base >= segments) base = 0, --level;
      if (level < 0) level = top, begin += at_once;
    }
    return {0, -1, 0, 0};
  }
};

template <class P>
__device__ int key_tiles(const Tile& tile, int shift) {
  return (min(tile.length, tile.first + (P::kRows >> shift)) + P::kKeys - 1) / P::kKeys;
}

/// The producer: one warp draws tiles and fetches queries, keys and values.
template <class P, class Places>
__device__ void produce(const CUtensorMap* map_q, const CUtensorMap* map_k, const CUtensorMap* map_v,
                        Cursor cursor, int shift, int packs_per_k, int* next, Places& at) {
  const bool leader = threadIdx.x == 0;
  cursor.find_longest();
  int stage = 0, phase = 0, stage_q = 0, phase_q = 0, draw = blockIdx.x;
  for (;;) {
    const int drawn = leader ? atomicAdd(next, 1) : 0;  // used only when this tile's keys are on their way
    const Tile tile = cursor.find(draw);
    const int head = tile.pack / packs_per_k;
    for (int j = key_tiles<P>(tile, shift) - 1, last = j; leader && j >= 0; --j) {
      const int token = tile.start + j * P::kKeys;
      wait(at.empty_k + stage, phase ^ 1);
      arrive_and_expect(at.full_k + stage, P::kBytesK);
      for (int p = 0; p < P::kPanels; ++p)
        load(at.k_tile(stage) + p * P::kKeyPanel, map_k, p * 64, head, token, at.full_k + stage);
      if (j == last) {
        wait(at.empty_q + stage_q, phase_q ^ 1);
        at.current[stage_q] = tile;
        arrive_and_expect(at.full_q + stage_q, P::kBytesQ);
        for (int c = 0; c < P::kConsumers; ++c)
          for (int p = 0; p < P::kPanels; ++p)
            load(at.q_tile(stage_q) + (c * P::kPanels + p) * P::kBox, map_q, p * 64, tile.pack << shift,
                 tile.start + tile.first + (c * 64 >> shift), at.full_q + stage_q);
        if (++stage_q == P::kStagesQ) stage_q = 0, phase_q ^= 1;
      }
      wait(at.empty_v + stage, phase ^ 1);
      arrive_and_expect(at.full_v + stage, P::kBytesK);
      for (int p = 0; p < P::kPanels; ++p)
        load(at.v_tile(stage) + p * P::kKeyPanel, map_v, p * 64, head, token, at.full_v + stage);
      if (++stage == P::kStages) stage = 0, phase ^= 1;
    }
    if (tile.length < 0) break;
    draw = gridDim.x + __shfl_sync(0xffffffffu, drawn, 0);
  }
  if (!leader) return;
  wait(at.empty_q + stage_q, phase_q ^ 1);
  at.current[stage_q] = {0, -1, 0, 0};
  arrive(at.full_q + stage_q);
}

/// The shared memory of a block.
template <class P>
struct Places {
  uint8_t* tiles;
  Tile* current;  // the tiles that full_q announces
  uint64_t *full_q, *empty_q, *full_k, *empty_k, *full_v, *empty_v;
  __device__ uint8_t* q_tile(int stage) const { return tiles + stage * P::kBytesQ; }
  __device__ uint8_t* k_tile(int stage) const {
    return tiles + P::kStagesQ * P::kBytesQ + stage * 2 * P::kBytesK;
  }
  __device__ uint8_t* v_tile(int stage) const { return k_tile(stage) + P::kBytesK; }
};

/// A warp's 16 rows of results go through its own part of shared memory, so that it writes 16 bytes a lane.
/// Rows past the segment's end are not written: they are the next segment's.
template <class P>
__device__ void write_results(const float (&o)[P::kDim / 2], const float (&sums)[2], uint8_t* results,
                              const Tile& tile, int consumer, int shift, int hq, __nv_bfloat16* out) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
  const auto place = [&](int row, int piece) {
    return results + piece / 8 * P::kBox + row * 128 + (piece % 8 ^ row % 8) * 16;
  };
  __syncwarp();  // what was here before has been read
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = sums[half];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    const float scale = 1 / sum;
#pragma unroll
    for (int c = 0; c < P::kDim / 8; ++c)  // a lane's pair of each eight columns
      *reinterpret_cast<uint32_t*>(place(warp * 16 + lane / 4 + half * 8, c) + lane % 4 * 4) =
          pair(o[c * 4 + half * 2] * scale, o[c * 4 + half * 2 + 1] * scale);
  }
  __syncwarp();
  constexpr int kPieces = P::kDim / 8;
#pragma unroll
  for (int i = lane; i < 16 * kPieces; i += 32) {
    const int row = warp * 16 + i / kPieces, position = tile.first + ((consumer * 64 + row) >> shift);
    const int head = (tile.pack << shift) + (row & ((1 << shift) - 1));
    if (position < tile.length)
      *reinterpret_cast<uint4*>(out + (static_cast<int64_t>(tile.start + position) * hq + head) * P::kDim +
                                i % kPieces * 8) = *reinterpret_cast<const uint4*>(place(row, i % kPieces));
  }
}

template <class P>
__global__ void __launch_bounds__(P::kThreads, 1)
    attention(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
              const __grid_constant__ CUtensorMap map_v, const int* offsets, __nv_bfloat16* out, int segments,
              int hq, int hk, int shift, int packs_at_once, float factor, int* next) {
  constexpr int kDim = P::kDim;
  extern __shared__ uint8_t shared[];
  __shared__ Tile current[P::kStagesQ];
  __shared__ uint64_t full_q[P::kStagesQ], empty_q[P::kStagesQ], full_k[P::kStages], empty_k[P::kStages],
      full_v[P::kStages], empty_v[P::kStages];
  const Places<P> at{shared + (1024 - address(shared) % 1024) % 1024,
                     current,
                     full_q,
                     empty_q,
                     full_k,
                     empty_k,
                     full_v,
                     empty_v};
  if (threadIdx.x == 0) {
    for (int i = 0; i < P::kStagesQ; ++i) init(full_q + i, 1), init(empty_q + i, 4 * P::kConsumers);
    for (int i = 0; i < P::kStages; ++i) {
      init(full_k + i, 1), init(full_v + i, 1);
      init(empty_k + i, P::kConsumers), init(empty_v + i, P::kConsumers);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int group = threadIdx.x / 128;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x / 32 == 0)
      produce<P>(&map_q, &map_k, &map_v, {offsets, segments, P::kRows >> shift, hq >> shift, packs_at_once},
                 shift, (hq >> shift) / hk, next, at);
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  const int consumer = group - 1, me = threadIdx.x % 128;
  uint8_t* const results = at.tiles + P::kTiles + consumer * P::kPanels * P::kBox;
  const int row = consumer * 64 + me / 32 * 16 + me % 32 / 4;  // of the tile's 128, and the one 8 below
  const auto my_turn = [&] { asm volatile("bar.sync %0, 256;" ::"r"(2 + consumer) : "memory"); };
  const auto your_turn = [&] {
    asm volatile("bar.arrive %0, 256;" ::"r"(2 + (consumer + 1) % P::kConsumers) : "memory");
  };
  if (consumer == P::kConsumers - 1) your_turn();  // the first group begins
  int stage = 0, phase = 0, stage_q = 0, phase_q = 0;

  float s[P::kKeys / 2], o[kDim / 2];
  uint32_t p[P::kKeys / 4];
  const auto ask_for_scores = [&](int stage_k, int stage_of) {
    const uint8_t* const mine = at.q_tile(stage_of) + consumer * P::kPanels * P::kBox;
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i)
      multiply_scores(s, matrix(mine + i / 4 * P::kBox + i % 4 * 32, 0, 1024),
                      matrix(at.k_tile(stage_k) + i / 4 * P::kKeyPanel + i % 4 * 32, 0, 1024), i > 0);
    commit();
  };
  const auto ask_for_values = [&](int stage_v, bool add) {
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < P::kKeys / 16; ++i)
      multiply_values(o, p + i * 4, matrix(at.v_tile(stage_v) + i * 2048, P::kKeyPanel, 1024), add || i > 0);
    commit();
  };
  Tile tile;
  int j = 0;  // the step within the tile
  /// Waits for the next tile; false when there is none.
  const auto next_tile = [&] {
    wait(full_q + stage_q, phase_q);
    Tile read{};
    if (me % 32 == 0) read = current[stage_q];
    tile = {__shfl_sync(0xffffffffu, read.start, 0), __shfl_sync(0xffffffffu, read.length, 0),
            __shfl_sync(0xffffffffu, read.first, 0), __shfl_sync(0xffffffffu, read.pack, 0)};
    j = key_tiles<P>(tile, shift) - 1;
    return tile.length >= 0;
  };
  const auto mask_scores = [&] {
    if ((j + 1) * P::kKeys <= tile.first + (consumer * 64 >> shift) + 1) return;  // before all queries
    const int query[2] = {tile.first + (row >> shift), tile.first + ((row + 8) >> shift)};
    mask(s, j * P::kKeys, query);
  };
  /// The keys have been used, and after a tile's last step its queries.
  const auto release = [&] {
    if (me == 0) arrive(empty_k + stage);
    if (j > 0) return;
    if (me % 32 == 0) arrive(empty_q + stage_q);  // by the lane that read `current`
    if (++stage_q == P::kStagesQ) stage_q = 0, phase_q ^= 1;
  };

  Softmax<P::kKeys / 2> softmax;
  float shrink[2];
  bool begun = false;
  const bool more = next_tile();
  if (more) {
    wait(full_k + stage, phase);
    my_turn();
    ask_for_scores(stage, stage_q);
    your_turn();
    wait_for_products<0>();
    mask_scores();
    release();
    softmax.take(s, factor, shrink);
    to_weights(p, s);
  }
  /// One step of the pipeline: the next scores start before this step's values. In a tile's last step they
  /// are the next tile's.
  const auto advance = [&](auto is_last) {
    constexpr bool kLast = decltype(is_last)::value;
    const int before = stage, phase_before = phase;
    const Tile tile_before = tile;
    if (kLast) {
      if (!next_tile()) {
        tile = tile_before;
        return false;
      }
    } else {
      --j;
    }
    if (++stage == P::kStages) stage = 0, phase ^= 1;
    wait(full_k + stage, phase);
    my_turn();
    ask_for_scores(stage, stage_q);
    wait(full_v + before, phase_before);
    ask_for_values(before, begun);
    your_turn();
    begun = !kLast;
    wait_for_products<1>();
    mask_scores();
    release();
    const float sums[2] = {softmax.sum[0], softmax.sum[1]};
    if (kLast) softmax = {};
    softmax.take(s, factor, shrink);
    wait_for_products<0>();
    if (me == 0) arrive(empty_v + before);
    if (kLast) {
      write_results<P>(o, sums, results, tile_before, consumer, shift, hq, out);
    } else {
#pragma unroll
      for (int i = 0; i < kDim / 2; ++i) o[i] *= shrink[i / 2 % 2];
    }
    to_weights(p, s);
    return true;
  };
  if (more) {
    do {
      while (j > 0) advance(std::false_type());
    } while (advance(std::true_type()));
    wait(full_v + stage, phase);
    ask_for_values(stage, begun);
    wait_for_products<0>();
    write_results<P>(o, softmax.sum, results, tile, consumer, shift, hq, out);
  }
  if (consumer == 0) my_turn();  // takes the other group's last arrival
}

/// [total, heads, dim] as TMA sees it: boxes of 64 columns, so many heads and so many tokens.
CUtensorMap map_of(const __nv_bfloat16* tensor, int64_t total, int64_t heads, int64_t dim, int box_heads,
                   int box_tokens) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(dim), static_cast<cuuint64_t>(heads),
                             static_cast<cuuint64_t>(total)};
  const cuuint64_t pitch[] = {size[0] * sizeof(__nv_bfloat16), size[0] * size[1] * sizeof(__nv_bfloat16)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_heads), static_cast<cuuint32_t>(box_tokens)};
  const cuuint32_t step[] = {1, 1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<__nv_bfloat16*>(tensor), size, pitch, box,
             step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the tensor");
  return map;
}

template <class P>
void start(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, const int32_t* offsets,
           __nv_bfloat16* o, int64_t total, int64_t hq, int64_t hk, int64_t segments, int* next,
           cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  int shift = 0;  // heads of a pack: as many as the group has factors of two
  while (shift < 6 && hq / hk % (2 << shift) == 0) ++shift;
  const int64_t packs = hq >> shift, tiles = packs * (total / (P::kRows >> shift) + segments);
  // Packs whose keys and values fill 32 MB of the L2 cache.
  const int64_t fit = (32 << 20) * packs / (total * hk * P::kDim * 2 * static_cast<int64_t>(sizeof(*k)));
  const int64_t at_once = fit < 1 ? 1 : fit < packs ? fit : packs;
  cudaMemsetAsync(next, 0, sizeof(int), stream);
  cudaFuncSetAttribute(attention<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kShared);
  attention<P><<<static_cast<unsigned>(tiles < multiprocessors ? tiles : multiprocessors), P::kThreads,
                 P::kShared, stream>>>(
      map_of(q, total, hq, P::kDim, 1 << shift, 64 >> shift), map_of(k, total, hk, P::kDim, 1, P::kKeys),
      map_of(v, total, hk, P::kDim, 1, P::kKeys), offsets, o, static_cast<int>(segments),
      static_cast<int>(hq), static_cast<int>(hk), shift, static_cast<int>(at_once),
      static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(P::kDim))), next);
}

extern "C" size_t workspace_bytes(int64_t /*total*/, int64_t /*hq*/, int64_t /*d*/, int64_t /*hk*/,
                                  int64_t /*segments*/) {
  return sizeof(int);
}

extern "C" void launch(const __nv_bfloat16* q /*[total,hq,d]*/, const __nv_bfloat16* k /*[total,hk,d]*/,
                       const __nv_bfloat16* v /*[total,hk,d]*/, const int32_t* cu_seqlens /*[segments + 1]*/,
                       __nv_bfloat16* o /*[total,hq,d]*/, int64_t total, int64_t hq, int64_t d, int64_t hk,
                       int64_t segments, void* workspace, cudaStream_t stream) {
  int* const next =
      static_cast<int*>(workspace);  // the first tile that no block has taken, less one per block
  const auto run = d == 64 ? start<Plan<64, 4>> : start<Plan<128, 2>>;
  run(q, k, v, cu_seqlens, o, total, hq, hk, segments, next, stream);
}
