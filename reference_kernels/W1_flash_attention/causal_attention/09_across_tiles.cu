// Rung 9: the pipeline runs on from tile to tile.
//
// Changed     the next tile's first scores are asked for with the last values of this one, and its softmax
//             hides the results' way out. So its queries have to be there: they have two places, and the
//             producer draws a tile ahead of its use. At n <= 1024 33 heads at a time, a round of tiles.
// Why         at n = 512 a tile has one to four steps. In rung 8 the first softmax and the last product
//             of every tile hide behind nothing.
// Prediction  1.1x at n = 512, where every second step is the first or the last one; nothing at n = 16384.
// Came        97 us on an H100, 354.22 TFLOP/s, 0.97 times the rung before. 1123 % of the native baseline.
//
// Shapes      q, k, v, o [h, n, d], fp16, row-major; query i sees keys 0 to i.
// Launch      one block of 384 or 512 threads per multiprocessor; tiles of 128 or 192 queries.
// Resources   240 or 160 registers per consumer, 24 or 32 a producer; up to 227 KB of shared memory;
//             4 bytes of workspace.
// Cost        2 h n (n + 1) d FLOPs and the masked half of the tiles on the diagonal; 8 h n d bytes.
// Divides     d is 64 or 128 (the problem says so); n anything.
// Source      tile shapes: FlashAttention-3, J. Shah et al. (2024). Needs sm_90a.
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

constexpr bool kCausal = true;  // attention's rung 8 is this file with false

template <int kDepth, int kGroups, int kKeysPerTile, int kSlots, int kSlotsOfQueries, int kBlocksPerSm = 1>
struct Plan {
  static constexpr int kDim = kDepth, kConsumers = kGroups, kQueries = 64 * kConsumers, kKeys = kKeysPerTile;
  static constexpr int kStages = kSlots, kStagesQ = kSlotsOfQueries, kBlocks = kBlocksPerSm;
  static constexpr int kPanels = kDim / 64, kThreads = 128 * (1 + kConsumers);
  static constexpr int kBox = 64 * 128;          // [B]: 64 rows of 64 columns
  static constexpr int kKeyPanel = kKeys * 128;  // [B]
  static constexpr int kBytesQ = kConsumers * kPanels * kBox, kBytesK = kPanels * kKeyPanel;
  static constexpr int kTiles = kStagesQ * kBytesQ + kStages * 2 * kBytesK;
  // Results have a place of their own, so that the next queries can arrive before they have left.
  static constexpr bool kOwnResults = kTiles + kBytesQ + 1024 <= 227 * 1024 / kBlocks;
  // Who says that queries have been used: the warps, or with results in their place who stored these.
  static constexpr int kReadersQ = kOwnResults ? 4 * kConsumers : kConsumers;
  static constexpr int kShared = kTiles + (kOwnResults ? kBytesQ : 0) + 1024;
  // What the kernel starts with, and how the consumers divide what the producer gives back.
  static constexpr int kAtStart = 65536 / kBlocks / kThreads / 8 * 8;
  static constexpr int kProducerRegisters = kConsumers == 3 ? 32 : 24;
  static constexpr int kLeft = ((1 + kConsumers) * kAtStart - kProducerRegisters) / kConsumers / 8 * 8;
  static constexpr int kConsumerRegisters = kLeft < 240 ? kLeft : 240;
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
/// The box of `map` at (column, row) of a head; rows past the head's last are zeros.
__device__ void load(void* to, const CUtensorMap* map, int column, int row, int head, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5}], [%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row), "r"(head)
      : "memory");
}
__device__ void store(const CUtensorMap* map, const void* from, int column, int row, int head) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(address(from)), "r"(column), "r"(row), "r"(head)
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
#define LIST48 LIST32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define LIST64 \
  LIST48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LIST80 \
  LIST64       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"

/// Scores: 64 queries x 128 or 176 keys, 16 deep; queries and keys lie in shared memory, both along the
/// depth.
__device__ void multiply_scores(float (&d)[32], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LIST32 "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16)
      : "l"(q), "l"(k), "r"(static_cast<int>(add)));
}
__device__ void multiply_scores(float (&d)[64], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LIST64 "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16), D16(32), D16(48)
      : "l"(q), "l"(k), "r"(static_cast<int>(add)));
}
__device__ void multiply_scores(float (&d)[80], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %82, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n160k16.f32.f16.f16 {" LIST80 "}, %80, %81, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16), D16(32), D16(48), D16(64)
      : "l"(q), "l"(k), "r"(static_cast<int>(add)));
}
__device__ void multiply_scores(float (&d)[48], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %50, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {" LIST48 "}, %48, %49, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16), D16(32)
      : "l"(q), "l"(k), "r"(static_cast<int>(add)));
}
/// Values: 64 queries x 64 or 128 columns, 16 keys deep; the weights come from registers.
__device__ void multiply_values(float (&d)[32], const uint32_t* p, uint64_t v, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LIST32
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
      : D16(0), D16(16)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v), "r"(static_cast<int>(add)));
}
__device__ void multiply_values(float (&d)[64], const uint32_t* p, uint64_t v, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LIST64
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : D16(0), D16(16), D16(32), D16(48)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v), "r"(static_cast<int>(add)));
}

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ uint32_t halves(float a, float b) {
  const __half2 both = __floats2half2_rn(a, b);
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

/// Keys that a query does not see: past the last one, or (causal) behind the query.
template <int kScores>
__device__ void mask(float (&s)[kScores], int first_key, int keys, int query) {
#pragma unroll
  for (int j = 0; j < kScores / 4; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first_key + j * 8 + threadIdx.x % 4 * 2 + i % 2;
      if (key >= keys || (kCausal && key > query + i / 2 * 8)) s[j * 4 + i] = -INFINITY;
    }
}
template <int kScores>
__device__ void to_weights(uint32_t (&p)[kScores / 2], const float (&s)[kScores]) {
#pragma unroll
  for (int j = 0; j < kScores / 2; ++j) p[j] = halves(s[j * 2], s[j * 2 + 1]);
}

template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kBlocks)
    attention(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
              const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_o, int heads,
              int n, float factor, int heads_at_once, int* next) {
  constexpr int kDim = P::kDim;
  extern __shared__ uint8_t shared[];
  __shared__ int current[P::kStagesQ];  // the tiles of queries that full_q announces
  __shared__ uint64_t full_q[P::kStagesQ], empty_q[P::kStagesQ], full_k[P::kStages], empty_k[P::kStages],
      full_v[P::kStages], empty_v[P::kStages];
  uint8_t* const aligned = shared + (1024 - address(shared) % 1024) % 1024;
  const auto q_tile = [&](int stage) { return aligned + stage * P::kBytesQ; };
  const auto k_tile = [&](int stage) { return aligned + P::kStagesQ * P::kBytesQ + stage * 2 * P::kBytesK; };
  const auto v_tile = [&](int stage) { return k_tile(stage) + P::kBytesK; };
  if (threadIdx.x == 0) {
    for (int i = 0; i < P::kStagesQ; ++i) init(full_q + i, 1), init(empty_q + i, P::kReadersQ);
    for (int i = 0; i < P::kStages; ++i) {
      init(full_k + i, 1), init(full_v + i, 1);
      init(empty_k + i, P::kConsumers), init(empty_v + i, P::kConsumers);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  const int blocks = (n + P::kQueries - 1) / P::kQueries, tiles = heads * blocks;
  // Causal: those with the most keys first, for as many heads at once as the L2 cache holds keys and values
  // of.
  const auto place_of = [&](int tile, int& head, int& first) {
    if (kCausal) {
      const int before = tile / (heads_at_once * blocks) * heads_at_once, inside = tile - before * blocks;
      const int here = min(heads_at_once, heads - before);
      head = before + inside % here, first = (blocks - 1 - inside / here) * P::kQueries;
    } else {
      head = tile / blocks, first = tile % blocks * P::kQueries;
    }
  };
  const auto key_tiles = [&](int first) {
    const int keys = kCausal && first + P::kQueries < n ? first + P::kQueries : n;
    return (keys + P::kKeys - 1) / P::kKeys;
  };
  const int group = threadIdx.x / 128;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(P::kProducerRegisters));
    if (threadIdx.x != 0) return;
    int stage = 0, phase = 0, stage_q = 0, phase_q = 0;
    for (int tile = blockIdx.x; tile < tiles;) {
      const int drawn = atomicAdd(next, 1);  // used only when this tile's keys are on their way
      int head, first;
      place_of(tile, head, first);
      for (int j = key_tiles(first) - 1, last = j; j >= 0; --j) {
        wait(empty_k + stage, phase ^ 1);
        arrive_and_expect(full_k + stage, P::kBytesK);
        for (int p = 0; p < P::kPanels; ++p)
          load(k_tile(stage) + p * P::kKeyPanel, &map_k, p * 64, j * P::kKeys, head, full_k + stage);
        if (j == last) {
          wait(empty_q + stage_q, phase_q ^ 1);
          current[stage_q] = tile;
          arrive_and_expect(full_q + stage_q, P::kBytesQ);
          for (int c = 0; c < P::kConsumers; ++c)
            for (int p = 0; p < P::kPanels; ++p)
              load(q_tile(stage_q) + (c * P::kPanels + p) * P::kBox, &map_q, p * 64, first + c * 64, head,
                   full_q + stage_q);
          if (++stage_q == P::kStagesQ) stage_q = 0, phase_q ^= 1;
        }
        wait(empty_v + stage, phase ^ 1);
        arrive_and_expect(full_v + stage, P::kBytesK);
        for (int p = 0; p < P::kPanels; ++p)
          load(v_tile(stage) + p * P::kKeyPanel, &map_v, p * 64, j * P::kKeys, head, full_v + stage);
        if (++stage == P::kStages) stage = 0, phase ^= 1;
      }
      tile = gridDim.x + drawn;
    }
    wait(empty_q + stage_q, phase_q ^ 1);
    current[stage_q] = tiles;  // no more
    arrive(full_q + stage_q);
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(P::kConsumerRegisters));
  const int consumer = group - 1, me = threadIdx.x % 128;
  const int row = me / 32 * 16 + me % 32 / 4;  // of the group's 64, and the one 8 below
  const auto my_turn = [&] { asm volatile("bar.sync %0, 256;" ::"r"(2 + consumer) : "memory"); };
  const auto your_turn = [&] {
    asm volatile("bar.arrive %0, 256;" ::"r"(2 + (consumer + 1) % P::kConsumers) : "memory");
  };
  if (consumer == P::kConsumers - 1) your_turn();  // the first group begins
  int stage = 0, phase = 0, stage_q = 0, phase_q = 0;

  float s[P::kKeys / 2], o[kDim / 2];
  uint32_t p[P::kKeys / 4];
  const auto ask_for_scores = [&](int at, int at_q) {
    const uint8_t* const mine = q_tile(at_q) + consumer * P::kPanels * P::kBox;
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i)
      multiply_scores(s, matrix(mine + i / 4 * P::kBox + i % 4 * 32, 0, 1024),
                      matrix(k_tile(at) + i / 4 * P::kKeyPanel + i % 4 * 32, 0, 1024), i > 0);
    commit();
  };
  const auto ask_for_values = [&](int at, bool add) {
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < P::kKeys / 16; ++i)
      multiply_values(o, p + i * 4, matrix(v_tile(at) + i * 2048, P::kKeyPanel, 1024), add || i > 0);
    commit();
  };
  int head = 0, first = 0, slot = 0, j = 0;  // where this group is: tile and step
  /// Waits for the next tile of queries; false when there is none.
  const auto next_tile = [&] {
    wait(full_q + stage_q, phase_q);
    const int tile = __shfl_sync(0xffffffffu, me % 32 == 0 ? current[stage_q] : 0, 0);
    if (tile >= tiles) return false;
    place_of(tile, head, first);
    slot = stage_q;
    j = key_tiles(first) - 1;
    return true;
  };
  const auto mask_scores = [&] {
    if ((j + 1) * P::kKeys > n || (kCausal && (j + 1) * P::kKeys > first + consumer * 64 + 1))
      mask(s, j * P::kKeys, n, first + consumer * 64 + row);
  };
  /// The keys have been used, and after a tile's last step its queries.
  const auto release = [&] {
    if (me == 0) arrive(empty_k + stage);
    if (j > 0) return;
    if (P::kOwnResults && me % 32 == 0) arrive(empty_q + stage_q);  // by the lane that read `current`
    if (++stage_q == P::kStagesQ) stage_q = 0, phase_q ^= 1;
  };
  const auto write_results = [&](const float(&sums)[2], int head_of, int first_of, int stage_of) {
    uint8_t* const results =
        (P::kOwnResults ? aligned + P::kTiles : q_tile(stage_of)) + consumer * P::kPanels * P::kBox;
    if (me == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the tile's before
    asm volatile("bar.sync %0, 128;" ::"r"(8 + consumer) : "memory");
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = sums[half];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const float scale = 1 / sum;
#pragma unroll
      for (int c = 0; c < kDim / 8; ++c) {  // a lane's pair of each eight columns
        const int at = row + half * 8;
        *reinterpret_cast<uint32_t*>(results + c / 8 * P::kBox + at * 128 + (c % 8 ^ at % 8) * 16 +
                                     me % 4 * 4) =
            halves(o[c * 4 + half * 2] * scale, o[c * 4 + half * 2 + 1] * scale);
      }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(8 + consumer) : "memory");
    if (me == 0) {
      for (int c = 0; c < P::kPanels; ++c)
        store(&map_o, results + c * P::kBox, c * 64, first_of + consumer * 64, head_of);
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      if (!P::kOwnResults) {
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        arrive(empty_q + stage_of);
      }
    }
  };

  Softmax<P::kKeys / 2> softmax;
  float shrink[2];
  next_tile();  // the grid has no more blocks than there are tiles
  wait(full_k + stage, phase);
  my_turn();
  ask_for_scores(stage, stage_q);
  your_turn();
  wait_for_products<0>();
  mask_scores();
  release();
  softmax.take(s, factor, shrink);
  to_weights(p, s);
  bool begun = false;
  /// One step of the pipeline: the next scores start before this step's values. In a tile's last step they
  /// are the next tile's.
  const auto advance = [&](auto is_last) {
    constexpr bool kLast = decltype(is_last)::value;
    const int before = stage, phase_before = phase, head_before = head, first_before = first,
              slot_before = slot;
    if (kLast) {
      if (!next_tile()) return false;
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
      write_results(sums, head_before, first_before, slot_before);
    } else {
#pragma unroll
      for (int i = 0; i < kDim / 2; ++i) o[i] *= shrink[i / 2 % 2];
    }
    to_weights(p, s);
    return true;
  };
  do {
    while (j > 0) advance(std::false_type());
  } while (advance(std::true_type()));
  wait(full_v + stage, phase);
  ask_for_values(stage, begun);
  wait_for_products<0>();
  write_results(softmax.sum, head, first, slot);
  if (me == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  if (consumer == 0) my_turn();  // takes the other group's last arrival
}

/// [heads, n, dim] as TMA sees it: boxes of 64 columns and so many rows of one head.
CUtensorMap map_of(const __half* tensor, int64_t heads, int64_t n, int64_t dim, int box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(dim), static_cast<cuuint64_t>(n),
                             static_cast<cuuint64_t>(heads)};
  const cuuint64_t pitch[] = {size[0] * sizeof(__half), size[0] * size[1] * sizeof(__half)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows), 1}, step[] = {1, 1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, const_cast<__half*>(tensor), size, pitch, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the tensor");
  return map;
}

template <class P>
void start(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n, int* next,
           cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  multiprocessors *= P::kBlocks;
  const int64_t tiles = h * ((n + P::kQueries - 1) / P::kQueries);
  const int64_t fit =
      (32 << 20) / (n * P::kDim * 2 * sizeof(__half));  // heads whose keys and values fill 32 MB
  // Short heads: a round of tiles at a time, so that fetching and multiplying take turns all along.
  const int64_t most = n <= 1024 && fit > 33 ? 33 : fit;
  const int64_t heads_at_once = most < 1 ? 1 : most < h ? most : h;
  cudaMemsetAsync(next, 0, sizeof(int), stream);
  cudaFuncSetAttribute(attention<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kShared);
  attention<P><<<static_cast<unsigned>(tiles < multiprocessors ? tiles : multiprocessors), P::kThreads,
                 P::kShared, stream>>>(map_of(q, h, n, P::kDim, 64), map_of(k, h, n, P::kDim, P::kKeys),
                                       map_of(v, h, n, P::kDim, P::kKeys), map_of(o, h, n, P::kDim, 64),
                                       static_cast<int>(h), static_cast<int>(n),
                                       static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(P::kDim))),
                                       static_cast<int>(heads_at_once), next);
}

extern "C" size_t workspace_bytes(int64_t /*h*/, int64_t /*n*/, int64_t /*d*/) { return sizeof(int); }

extern "C" void launch(const __half* q /*[h,n,d]*/, const __half* k /*[h,n,d]*/, const __half* v /*[h,n,d]*/,
                       __half* o /*[h,n,d]*/, int64_t h, int64_t n, int64_t d, void* workspace,
                       cudaStream_t stream) {
  int* const next =
      static_cast<int*>(workspace);  // the first tile that no block has taken, less one per block
  if (d == 64 && n <= 1024)
    start<Plan<64, 2, 128, 2, 2>>(q, k, v, o, h, n, next, stream);
  else if (d == 64)
    start<Plan<64, 3, 128, 2, 2>>(q, k, v, o, h, n, next, stream);
  else
    start<Plan<128, 2, 128, 2, 2>>(q, k, v, o, h, n, next, stream);
}
