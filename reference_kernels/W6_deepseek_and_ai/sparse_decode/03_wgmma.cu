// Rung 3: one warp group gathers and converts, two multiply, and take turns.
//
// Changed     four warps gather tokens into registers, a tile ahead, and store them as bf16 in the layout of
//             WGMMA. Two warp groups have 256 of 512 columns each; of each two tiles, each group computes the
//             scores of one while the other multiplies.
// Why         in rung 2 the tensor cores wait for the conversion, then for the softmax, and mma.sync is bound
//             by the loads of its operands. All three can happen at the same time.
// Prediction  a tile of 64 tokens is 2176 clocks of tensor cores. It has 32768 codes, 256 for a producer, and
//             two codes take six instructions, two of them at half rate: 1000 to 1300 clocks, and about 800
//             for the loads of the last tile. That is little less than the tensor cores take, and all three
//             groups share the issue slots: 1.6x rung 2: 330 TFLOP/s.
// Came        473 us on an H100, 309 TFLOP/s, 2.04 times the rung before. 728 % of the native baseline.
//
// Shapes      q [b, s_q, h, 576]; cache [tokens, 656] bytes; indices [b, s_q, topk]; o [b, s_q, h, 512].
// Launch      as many blocks as multiprocessors, 384 threads; then 256 threads for eight heads of a list.
// Resources   192 registers a consumer, 120 a producer; 225 KB of shared memory; workspace: two pieces for
//             each share, 2052 bytes a head.
// Cost        2 h (576 + 512) FLOPs for each token of a list; a list is gathered and converted h / 64 times.
// Divides     h <= 128 and topk <= 4096 (the problem says so); nothing else.
// Source      FlashMLA's schedule of two warp groups ("seesaw") and its warps that convert, DeepSeek (2025).
//             Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kTokens = 64;              // of a tile
constexpr int kKey = 576, kValue = 512;  // columns of a token; the first ones are values, too
constexpr int kBytes = 656, kScales = 512, kPosition = 528;  // [B] of a token; where its parts begin
constexpr int kRows = 64;                                    // heads of a block
constexpr int kThreads = 384, kMergeThreads = 256, kMergeWarps = kMergeThreads / 32;
constexpr int kProducers = 4;                       // warps
constexpr int kPanels = kKey / 64;                  // a panel: 64 rows of 64 columns, as TMA swizzles them
constexpr int kPanel = 64 * 128;                    // [B]
constexpr int kTile = kPanels * kPanel;             // [B]
constexpr int kShared = 3 * kTile + kPanel + 1024;  // queries, two tiles, weights

/// A tile arrives and is released in three parts: the value columns of each consumer, and the last panel
/// (positions), which is there last and free first.
constexpr int kParts = 3, kPositions = 2;
__device__ constexpr int first_panel(int part) { return part * 4; }
__device__ constexpr int panels_of(int part) { return part == kPositions ? 1 : 4; }

struct Problem {
  const uint8_t* cache;
  const int* indices;
  __nv_bfloat16* o;
  float* pieces;   // [2 * shares, h, 512]: results of parts of a list
  float* weights;  // [2 * shares, h]: log2 of the sum of their exponentials
  int lists, h, topk;
  int groups;  // of heads, one for a block
  int shares;  // of the tiles of all lists
  float factor;

  __host__ __device__ int tiles_each() const { return (topk + kTokens - 1) / kTokens; }
  __host__ __device__ int tiles() const { return lists * tiles_each(); }
  /// The first tile of a share. No share is empty.
  __host__ __device__ int first_tile(int share) const {
    return static_cast<int>(int64_t{tiles()} * share / shares);
  }
  /// Which share a tile belongs to.
  __host__ __device__ int share_of(int tile) const {
    return static_cast<int>(((int64_t{tile} + 1) * shares - 1) / tiles());
  }
};

// ---- barriers and copies ----------------------------------------------------------------------------------
__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
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
/// A box of q; past the last head, zeros.
__device__ void load_rows(void* to, const CUtensorMap* map, int column, int row, int list,
                          uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5}], [%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row), "r"(list)
      : "memory");
}
__device__ void copy_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(to)), "l"(from) : "memory");
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ void wait_for_copies() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }
/// 16 bytes that nothing else of this block will want.
__device__ uint4 load_16(const uint8_t* from) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}
/// What threads wrote into shared memory is seen by tensor cores and copies behind the next barrier.
__device__ void show_to_others() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void let_next_kernel_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait_for_kernel_in_front() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// Barriers of the block's threads. Weights are ready: one consumer arrives, the other waits.
enum Named { kFirstReady = 1, kSecondReady, kBothConsumers, kOneConsumer };
__device__ void named_wait(int name, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}
__device__ void named_arrive(int name, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// ---- tensor cores -----------------------------------------------------------------------------------------
/// Where a matrix lies, for wgmma: rows of 128 bytes, swizzled; eight rows are 1024 bytes, and the next 64
/// columns begin `leading` bytes further.
__device__ uint64_t matrix(const void* start, int leading) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | static_cast<uint64_t>(leading / 16) << 16 |
         uint64_t{1024 / 16} << 32 | uint64_t{1} << 62;
}
__device__ constexpr uint64_t bytes_on(int bytes) { return static_cast<uint64_t>(bytes / 16); }
__device__ void begin_multiplying() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kOnTheirWay>
__device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOnTheirWay) : "memory");
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
#define D64(i) D16(i), D16(i + 16), D16(i + 32), D16(i + 48)
#define LIST32                                                             \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LIST128                                                                                  \
  LIST32                                                                                         \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "           \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

/// Scores: 64 rows x 64 tokens, 16 columns deep; both operands lie in shared memory along the depth.
__device__ void multiply_scores(float (&d)[32], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LIST32 "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16)
      : "l"(q), "l"(k), "r"(static_cast<int>(add)));
}
/// Values: 64 rows x 256 columns, 16 tokens deep; the weights come from registers or from shared memory.
__device__ void multiply_values(float (&d)[128], const uint32_t* p, uint64_t v, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %133, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" LIST128
      "}, {%128, %129, %130, %131}, %132, p, 1, 1, 1;\n}"
      : D64(0), D64(64)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v), "r"(static_cast<int>(add)));
}
__device__ void multiply_values(float (&d)[128], uint64_t p, uint64_t v, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" LIST128 "}, %128, %129, p, 1, 1, 0, 1;\n}"
      : D64(0), D64(64)
      : "l"(p), "l"(v), "r"(static_cast<int>(add)));
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

// ---- shares -----------------------------------------------------------------------------------------------
/// The part of a list that lies in a share: its tiles first to last - 1, counted from the list's own first.
struct Segment {
  int list, first, last;
};
/// Walks over the segments of a share.
struct Walk {
  int each, left;  // tiles of a list; of the share that no segment has had
  Segment now;

  __device__ Walk(const Problem& p, int share) : each(p.tiles_each()) {
    const int begin = p.first_tile(share);
    left = p.first_tile(share + 1) - begin;
    now = {begin / each, begin % each, 0};
    fit();
  }
  __device__ bool more() const { return left > 0; }
  __device__ void next() {
    left -= now.last - now.first;
    now = {now.list + 1, 0, 0};
    fit();
  }
  __device__ bool whole() const { return now.first == 0 && now.last == each; }

 private:
  __device__ void fit() { now.last = min(each, now.first + left); }
};

// ---- from codes to bf16 -----------------------------------------------------------------------------------
using Scale = float;
__device__ Scale scale_of(float scale) { return scale; }
/// Two codes, times their scale.
__device__ uint32_t two_of(uint32_t codes, Scale scale) {
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(codes)));
  const float2 two = __half22float2(*reinterpret_cast<const __half2*>(&halves));
  return pair(two.x * scale, two.y * scale);
}
__device__ uint4 convert(uint32_t low, uint32_t high, Scale scale) {
  return {two_of(low, scale), two_of(low >> 16, scale), two_of(high, scale), two_of(high >> 16, scale)};
}

// ---- the two roles ----------------------------------------------------------------------------------------
struct Barriers {
  uint64_t full[2][kParts], empty[2][kParts], full_q, empty_q;
};
/// The shared memory of a block.
struct Places {
  uint8_t* tiles;
  Barriers* bars;
  uint32_t (*there)[2];     // of each stage, whether there is a token: a byte for eight
  float (*tops)[kRows];     // of each consumer: what its last exponents are relative to
  float (*sums)[2][kRows];  // at the end of a segment, even and odd ones

  __device__ uint8_t* queries() const { return tiles; }
  __device__ uint8_t* tile(int stage) const { return tiles + (1 + stage) * kTile; }
  __device__ uint8_t* weights() const { return tiles + 3 * kTile; }
};

/// One of four warps that gather. It has 16 tokens of each tile, and a lane has 16 codes of every second of
/// them, in columns 0 to 255 and in columns 256 to 511. It converts what the last tile's loads brought, and
/// each register that becomes free is loaded again: 16 loads are always on the way.
///
/// What belongs to a token lies in the lanes that need it: lane l knows of the tokens 2 (l % 4) + l / 4 % 2
/// and 8 more. So four lanes shuffle among themselves, and the lane to ask is a constant.
struct Producer {
  const Problem& p;
  const Places& at;
  const int warp, lane;

  static constexpr int kOwn = kTokens / kProducers;  // tokens of this warp

  __device__ int odd() const { return lane / 4 % 2; }
  __device__ int scaled_part() const { return lane / 8 % 2; }
  __device__ int piece() const { return lane % 4 + lane / 8 * 4; }  // of 16 pieces of a part, 16 codes each
  /// Of tile `number`, counted over all lists, this lane's two tokens; -1 where there is none.
  __device__ void load_ids(int (&ids)[2], int number, int end) const {
    const int list = number / p.tiles_each();
    const int place = number % p.tiles_each() * kTokens + warp * kOwn + lane % 4 * 2 + odd();
#pragma unroll
    for (int k = 0; k < 2; ++k)
      ids[k] =
          number < end && place + k * 8 < p.topk ? p.indices[int64_t{list} * p.topk + place + k * 8] : -1;
  }
  /// Where the list has no token, the first one of the cache does no harm: its weight will be zero.
  __device__ const uint8_t* token(int id) const { return p.cache + int64_t{max(id, 0)} * kBytes; }
  /// Of this lane's two tokens, the scale for the columns of this half of the warp, in one of both parts.
  __device__ void load_scales(float (&scales)[2], const int (&ids)[2]) const {
#pragma unroll
    for (int k = 0; k < 2; ++k)
      scales[k] = reinterpret_cast<const float*>(token(ids[k]) + kScales)[scaled_part() * 2 + lane / 16];
  }
  /// The scale for one part: eight lanes further there is the other one's.
  __device__ Scale scale_for(int part, float own) const {
    const float other = __shfl_xor_sync(kAllLanes, own, 8);
    return scale_of(scaled_part() == part ? own : other);
  }
  /// Token 2 i + odd().
  __device__ uint4 load_codes(int i, int part, const int (&ids)[2]) const {
    return load_16(token(__shfl_sync(kAllLanes, ids[i / 4], i % 4, 4)) + part * 256 + piece() * 16);
  }
  /// Eight lanes have 64 codes of two tokens: their stores meet in no bank. `to` is where the first one's go.
  __device__ void store_codes(int to, int i, const uint4& codes, Scale scale) const {
    const int here = (to ^ i % 4 * 32) + i * 256;
    *reinterpret_cast<uint4*>(at.tiles + here) = convert(codes.x, codes.y, scale);
    *reinterpret_cast<uint4*>(at.tiles + (here ^ 16)) = convert(codes.z, codes.w, scale);
  }
  __device__ void copy_positions(int stage, const int (&ids)[2]) const {
#pragma unroll
    for (int i = 0; i < kOwn * 8 / 32; ++i) {
      const int own = i * 4 + lane / 8, r = warp * kOwn + own;
      const int id = __shfl_sync(kAllLanes, ids[i / 2], lane / 8 % 2 * 4 + lane / 16 + i % 2 * 2);
      uint8_t* const to = at.tile(stage) + first_panel(kPositions) * kPanel + r * 128;
      copy_16(to + (lane % 8 ^ r % 8) * 16, token(id) + kPosition + lane % 8 * 16);
    }
    commit_copies();
  }
  /// A byte for eight tokens: bit l is that of lane l's.
  __device__ void tell_which(int stage, const int (&ids)[2]) const {
    const uint32_t low = __ballot_sync(kAllLanes, ids[0] >= 0) & 0xff,
                   high = __ballot_sync(kAllLanes, ids[1] >= 0) & 0xff;
    if (lane == 0)
      reinterpret_cast<uint16_t*>(at.there[stage])[warp] = static_cast<uint16_t>(low | high << 8);
  }
  __device__ void pass_on(int stage, int part) const {
    show_to_others();
    __syncwarp();
    if (lane == 0) arrive(&at.bars->full[stage][part]);
  }

  __device__ void run(const CUtensorMap* map_q, int first_row, int number, int end) {
    Barriers& bars = *at.bars;
    int ids[2], next_ids[2], stage = 0, phases = 3, phase_q = 1;  // a bit for each stage
    float scales[2];
    uint4 codes[2][kOwn / 2];
    load_ids(ids, number, end), load_ids(next_ids, number + 1, end);
    load_scales(scales, ids);
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int i = 0; i < kOwn / 2; ++i) codes[part][i] = load_codes(i, part, ids);
    for (bool first = true; number < end; ++number, first = false) {
      if (first || number % p.tiles_each() == 0) {  // a segment begins
        stage = 0;
        if (warp == 0 && lane == 0) {
          wait(&bars.empty_q, phase_q);
          arrive_and_expect(&bars.full_q, kTile);
          for (int panel = 0; panel < kPanels; ++panel)
            load_rows(at.queries() + panel * kPanel, map_q, panel * 64, first_row, number / p.tiles_each(),
                      &bars.full_q);
        }
        phase_q ^= 1;
        __syncwarp();
      }
      const int phase = phases >> stage & 1;
      wait(&bars.empty[stage][kPositions], phase);
      tell_which(stage, ids);
      copy_positions(stage, ids);
      ids[0] = next_ids[0], ids[1] = next_ids[1];
      load_ids(next_ids, number + 2, end);
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const Scale own[2] = {scale_for(part, scales[0]), scale_for(part, scales[1])};
        if (part == 1) load_scales(scales, ids);
        wait(&bars.empty[stage][part], phase);
        const int to = (1 + stage) * kTile + (first_panel(part) + piece() / 4) * kPanel +
                       (warp * kOwn + odd()) * 128 + (piece() % 4 * 2 ^ odd()) * 16;
#pragma unroll
        for (int i = 0; i < kOwn / 2; ++i) {
          store_codes(to, i, codes[part][i], __shfl_sync(kAllLanes, own[i / 4], i % 4, 4));
          codes[part][i] = load_codes(i, part, ids);
        }
        pass_on(stage, part);
      }
      wait_for_copies();
      pass_on(stage, kPositions);
      phases ^= 1 << stage;
      stage ^= 1;
    }
  }
};

/// Eight columns of bf16 for each lane, from pairs of columns of its quad: lane i of four gets group i.
__device__ uint4 gather_columns(const uint32_t (&own)[4]) {
  const bool upper = threadIdx.x & 2, odd = threadIdx.x & 1;
  const uint32_t a = __shfl_xor_sync(kAllLanes, upper ? own[0] : own[2], 2);
  const uint32_t b = __shfl_xor_sync(kAllLanes, upper ? own[1] : own[3], 2);
  // Groups 0 and 1 (2 and 3 for the upper lanes), from the lanes 0 and 2, or 1 and 3.
  const uint32_t low[2] = {upper ? a : own[0], upper ? b : own[1]},
                 high[2] = {upper ? own[2] : a, upper ? own[3] : b};
  const uint32_t c = __shfl_xor_sync(kAllLanes, odd ? low[0] : low[1], 1);
  const uint32_t d = __shfl_xor_sync(kAllLanes, odd ? high[0] : high[1], 1);
  return odd ? make_uint4(c, low[1], d, high[1]) : make_uint4(low[0], c, high[0], d);
}

/// One of two warp groups. It has 256 of 512 columns of the result of 64 rows. Of each two tiles it takes the
/// scores of one, and multiplies the weights of both with its columns.
struct Consumer {
  const Problem& p;
  const Places& at;
  const int me, first_row;  // 0 or 1; of the block's rows
  float o[128], s[32];
  uint32_t w[16];
  uint32_t there[2];     // of the own tile
  float top[2], sum[2];  // of rows row and row + 8

  __device__ int row() const { return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4; }

  __device__ void release(int stage, int part) const {
    if (threadIdx.x % 128 == 0) arrive(&at.bars->empty[stage][part]);
  }
  /// The positions, and which tokens there are: all four warps have read them.
  __device__ void release_positions(int stage) {
    there[0] = at.there[stage][0], there[1] = at.there[stage][1];
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(&at.bars->empty[stage][kPositions]);
  }
  /// Starts the scores of a tile; its parts come one after another.
  __device__ void ask_for_scores(int stage, int phase) {
    const uint64_t q = matrix(at.queries(), 0), k = matrix(at.tile(stage), 0);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      wait(&at.bars->full[stage][part], phase);
      begin_multiplying();
#pragma unroll
      for (int i = 0; i < panels_of(part) * 4; ++i) {
        const int on = (first_panel(part) + i / 4) * kPanel + i % 4 * 32;
        multiply_scores(s, q + bytes_on(on), k + bytes_on(on), part > 0 || i > 0);
      }
    }
    commit();
  }
  __device__ uint64_t values(int stage) const { return matrix(at.tile(stage) + me * 4 * kPanel, kPanel); }
  /// Starts weights times values, with this consumer's weights.
  __device__ void ask_for_own(int stage) {
    const uint64_t v = values(stage);
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < 4; ++i) multiply_values(o, w + i * 4, v + bytes_on(i * 2048), true);
    commit();
  }
  /// The same with the weights of the other one.
  __device__ void ask_for_others(int stage) {
    const uint64_t v = values(stage), weights = matrix(at.weights(), 0);
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < 4; ++i) multiply_values(o, weights + bytes_on(i * 32), v + bytes_on(i * 2048), true);
    commit();
  }
  __device__ void mask() {
    if ((there[0] & there[1]) == kAllLanes) return;
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (!(there[j / 4] >> (j % 4 * 8 + i * 4 + threadIdx.x % 4) & 1))
          s[j * 4 + i] = s[j * 4 + 2 + i] = -INFINITY;
  }
  /// Moves the maxima: what earlier weights are to be multiplied by.
  __device__ void move_tops(const float (&to)[2], float (&by)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      by[half] = to[half] == top[half] ? 1.0f : power_of_two(top[half] - to[half]);
      top[half] = to[half];
      sum[half] *= by[half];
    }
  }
  __device__ void shrink(const float (&by)[2]) {
#pragma unroll
    for (int i = 0; i < 128; ++i) o[i] *= by[i / 2 % 2];
  }
  __device__ static bool matters(const float (&by)[2]) {
    return __any_sync(kAllLanes, by[0] != 1.0f || by[1] != 1.0f);
  }
  /// The highest scores, as powers of two; a maximum that moves by less than 8 may stay, since 2^8 more or
  /// less fits bf16 and float alike.
  __device__ void next_tops(float (&next)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float high = -INFINITY;
#pragma unroll
      for (int j = 0; j < 8; ++j) high = fmaxf(high, fmaxf(s[j * 4 + half * 2], s[j * 4 + half * 2 + 1]));
      high = fmaxf(high, __shfl_xor_sync(kAllLanes, high, 1));
      high = fmaxf(high, __shfl_xor_sync(kAllLanes, high, 2)) * p.factor;
      next[half] = high > top[half] + 8 || top[half] == -INFINITY ? high : top[half];
    }
  }
  __device__ void to_weights() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float zero = top[half] == -INFINITY ? 0.0f : top[half];  // no token of this row so far
      float here = 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float a = power_of_two(fmaf(s[j * 4 + half * 2], p.factor, -zero)),
                    b = power_of_two(fmaf(s[j * 4 + half * 2 + 1], p.factor, -zero));
        here += a + b;
        w[j * 2 + half] = pair(a, b);
      }
      sum[half] += here;
    }
  }
  /// Weights and maxima, for the other consumer.
  __device__ void publish() {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row() + half * 8;
      uint8_t* const to = at.weights() + r * 128 + lane % 4 * 4;
#pragma unroll
      for (int j = 0; j < 8; ++j) *reinterpret_cast<uint32_t*>(to + (j ^ r % 8) * 16) = w[j * 2 + half];
      if (lane % 4 == 0) at.tops[me][r] = top[half];
    }
    show_to_others();
    named_arrive(me == 0 ? kFirstReady : kSecondReady, 256);
  }
  __device__ void wait_for_others(float (&next)[2]) const {
    named_wait(me == 0 ? kSecondReady : kFirstReady, 256);
    next[0] = at.tops[1 - me][row()], next[1] = at.tops[1 - me][row() + 8];
  }

  /// The two tiles of a step, or the only one; the first consumer's part.
  __device__ void first_part(const Segment& segment, int tile, int phase, bool last) {
    float next[2], by[2];
    ask_for_scores(0, phase);
    wait_for_products<0>();
    release_positions(0);
    if (last && threadIdx.x % 128 == 0) arrive(&at.bars->empty_q);
    mask();
    next_tops(next);
    move_tops(next, by);
    to_weights();
    publish();
    if (matters(by)) shrink(by);
    ask_for_own(0);
    wait_for_products<0>();
    release(0, 0);
    if (tile + 1 == segment.last) return;
    wait_for_others(next);
    move_tops(next, by);
    if (matters(by)) shrink(by);
    ask_for_others(1);
    wait_for_products<0>();
    release(1, 0);
  }
  /// The second consumer's part: it multiplies with the first one's weights while its own come into being.
  __device__ void second_part(const Segment& segment, int tile, int phase, bool last) {
    float next[2], by[2];
    if (tile + 1 == segment.last) {
      if (threadIdx.x % 128 == 0) arrive(&at.bars->empty_q);
      wait_for_others(next);
      move_tops(next, by);
      if (matters(by)) shrink(by);
      ask_for_others(0);
      wait_for_products<0>();
      release(0, 1);
      return;
    }
    ask_for_scores(1, phase);
    wait_for_others(next);
    wait_for_products<0>();
    release_positions(1);
    if (last && threadIdx.x % 128 == 0) arrive(&at.bars->empty_q);
    move_tops(next, by);
    if (matters(by)) shrink(by);
    ask_for_others(0);
    mask();
    next_tops(next);
    move_tops(next, by);
    to_weights();
    wait_for_products<0>();
    release(0, 1);
    publish();
    if (matters(by)) shrink(by);
    ask_for_own(1);
    wait_for_products<0>();
    release(1, 1);
  }

  /// Sums of both consumers; results to o if the segment is the whole list, else to a place of its own.
  __device__ void finish(int list, int place, int odd) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 1);
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 2);
      if (lane % 4 == 0) at.sums[odd][me][row() + half * 8] = sum[half];
    }
    named_wait(kBothConsumers, 256);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = first_row + row() + half * 8;
      const float total = sum[half] + at.sums[odd][1 - me][row() + half * 8];
      const float scale = total > 0 ? 1 / total : 0.0f;
      const bool exists = r < p.h;
      if (place >= 0) {
        const int64_t to = int64_t{place} * p.h + r;
        if (exists && me == 0 && lane % 4 == 0)
          p.weights[to] = total > 0 ? top[half] + log2f(total) : -INFINITY;
        float* const piece = p.pieces + to * kValue + me * 256 + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < 32; ++j)
          if (exists)
            *reinterpret_cast<float2*>(piece + j * 8) =
                make_float2(o[j * 4 + half * 2] * scale, o[j * 4 + half * 2 + 1] * scale);
      } else {
        __nv_bfloat16* const result = p.o + (int64_t{list} * p.h + r) * kValue + me * 256 + lane % 4 * 8;
#pragma unroll
        for (int j = 0; j < 32; j += 4) {
          uint32_t own[4];
#pragma unroll
          for (int i = 0; i < 4; ++i)
            own[i] = pair(o[(j + i) * 4 + half * 2] * scale, o[(j + i) * 4 + half * 2 + 1] * scale);
          const uint4 eight = gather_columns(own);
          if (exists) *reinterpret_cast<uint4*>(result + j * 8) = eight;
        }
      }
    }
  }

  __device__ void run(Walk walk, int share) {
    int phase = 0, phase_q = 0;  // of this consumer's stage
    for (int number = 0; walk.more(); walk.next(), ++number) {
      const Segment segment = walk.now;
      top[0] = top[1] = -INFINITY, sum[0] = sum[1] = 0;
#pragma unroll
      for (float& x : o) x = 0;
      wait(&at.bars->full_q, phase_q);
      phase_q ^= 1;
      for (int tile = segment.first; tile < segment.last; tile += 2) {
        const bool last = tile + 2 >= segment.last;
        if (me == 0)
          first_part(segment, tile, phase, last);
        else
          second_part(segment, tile, phase, last);
        if (tile + me < segment.last) phase ^= 1;
      }
      finish(segment.list, walk.whole() ? -1 : 2 * share + (number > 0), number % 2);
    }
  }
};

__global__ void __launch_bounds__(kThreads, 1)
    decode(const __grid_constant__ CUtensorMap map_q, const Problem p) {
  extern __shared__ uint8_t shared[];
  __shared__ Barriers bars;
  __shared__ uint32_t there[2][2];
  __shared__ float tops[2][kRows], sums[2][2][kRows];
  const Places at{shared + (1024 - address(shared) % 1024) % 1024, &bars, there, tops, sums};
  const int share = blockIdx.x / p.groups, first_row = blockIdx.x % p.groups * kRows;
  const int group = threadIdx.x / 128;
  let_next_kernel_begin();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; ++stage)
      for (int part = 0; part < kParts; ++part)
        init(&bars.full[stage][part], kProducers), init(&bars.empty[stage][part], part == kPositions ? 4 : 1);
    init(&bars.full_q, 1), init(&bars.empty_q, 2);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 120;");
    Producer producer{p, at, static_cast<int>(threadIdx.x) / 32, static_cast<int>(threadIdx.x) % 32};
    producer.run(&map_q, first_row, p.first_tile(share), p.first_tile(share + 1));
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 192;");
    Consumer consumer{p, at, group - 1, first_row};
    consumer.run(Walk(p, share), share);
  }
}

/// A warp for a head of a list: the weighted mean of the pieces, or zeros where there is no token.
__global__ void __launch_bounds__(kMergeThreads) merge(const Problem p) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, list = blockIdx.y;
  const int row = blockIdx.x * kMergeWarps + warp, begin = list * p.tiles_each();
  const int first = p.share_of(begin), pieces = p.share_of(begin + p.tiles_each() - 1) - first + 1;
  wait_for_kernel_in_front();
  if (pieces == 1 || row >= p.h) return;            // the block has written the result itself
  const bool second = p.first_tile(first) < begin;  // in the first share another list may lie in front
  const auto place_of = [&](int i) { return (int64_t{2} * (first + i) + (i == 0 && second)) * p.h + row; };
  float top = -INFINITY, sum = 0;
  for (int i = lane; i < pieces; i += 32) top = fmaxf(top, p.weights[place_of(i)]);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, offset));
  float4 mine[4] = {};
  for (int begin_of_32 = 0; top > -INFINITY && begin_of_32 < pieces; begin_of_32 += 32) {
    const int here = min(32, pieces - begin_of_32);
    const float own = lane < here ? power_of_two(p.weights[place_of(begin_of_32 + lane)] - top) : 0.0f;
    sum += own;
#pragma unroll 4  // loads that do not wait for one another
    for (int i = 0; i < here; ++i) {
      const float weight = __shfl_sync(kAllLanes, own, i);
      const float4* const piece =
          reinterpret_cast<const float4*>(p.pieces + place_of(begin_of_32 + i) * kValue);
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const float4 four = piece[x * 32 + lane];
        mine[x].x += weight * four.x, mine[x].y += weight * four.y;
        mine[x].z += weight * four.z, mine[x].w += weight * four.w;
      }
    }
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAllLanes, sum, offset);
  const float scale = sum > 0 ? 1 / sum : 0.0f;
  uint2* const to = reinterpret_cast<uint2*>(p.o + (int64_t{list} * p.h + row) * kValue);
#pragma unroll
  for (int x = 0; x < 4; ++x)
    to[x * 32 + lane] =
        make_uint2(pair(mine[x].x * scale, mine[x].y * scale), pair(mine[x].z * scale, mine[x].w * scale));
}

// ---- host -------------------------------------------------------------------------------------------------
/// `size` and `box` from the innermost dimension; rows lie next to each other.
CUtensorMap map_of(const __nv_bfloat16* tensor, int dims, const cuuint64_t* size, const cuuint32_t* box) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t pitch[] = {size[0] * sizeof(__nv_bfloat16), size[0] * size[1] * sizeof(__nv_bfloat16)};
  const cuuint32_t step[] = {1, 1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<cuuint32_t>(dims),
             const_cast<__nv_bfloat16*>(tensor), size, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the tensor");
  return map;
}

struct Division {
  int groups, shares;  // of heads; of the tiles of all lists
};
Division division_of(int64_t lists, int64_t h, int64_t topk) {
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const int groups = static_cast<int>((h + kRows - 1) / kRows);
  const int64_t tiles = lists * ((topk + kTokens - 1) / kTokens), most = processors / groups;
  return {groups, static_cast<int>(most < 1 ? 1 : most < tiles ? most : tiles)};
}

extern "C" size_t workspace_bytes(int64_t b, int64_t s_q, int64_t h, int64_t /*tokens*/, int64_t topk) {
  return static_cast<size_t>(2 * division_of(b * s_q, h, topk).shares * h * (kValue + 1)) * sizeof(float);
}

extern "C" void launch(const __nv_bfloat16* q /*[b,s_q,h,576]*/, const uint8_t* cache /*[tokens,656]*/,
                       const int32_t* indices /*[b,s_q,topk]*/, __nv_bfloat16* o /*[b,s_q,h,512]*/, int64_t b,
                       int64_t s_q, int64_t h, int64_t /*tokens*/, int64_t topk, void* workspace,
                       cudaStream_t stream) {
  const int64_t lists = b * s_q;
  const Division d = division_of(lists, h, topk);
  float* const pieces = static_cast<float*>(workspace);
  const Problem p{cache,
                  indices,
                  o,
                  pieces,
                  pieces + 2 * d.shares * h * kValue,
                  static_cast<int>(lists),
                  static_cast<int>(h),
                  static_cast<int>(topk),
                  d.groups,
                  d.shares,
                  static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kKey)))};
  const cuuint64_t size_q[] = {kKey, static_cast<cuuint64_t>(h), static_cast<cuuint64_t>(lists)};
  const cuuint32_t box_q[] = {64, kRows, 1};
  const CUtensorMap map_q = map_of(q, 3, size_q, box_q);
  cudaFuncSetAttribute(decode, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  decode<<<static_cast<unsigned>(d.groups * d.shares), kThreads, kShared, stream>>>(map_q, p);
  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim =
      dim3(static_cast<unsigned>((h + kMergeWarps - 1) / kMergeWarps), static_cast<unsigned>(lists));
  config.blockDim = dim3(kMergeThreads);
  config.stream = stream;
  config.attrs = early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, merge, p);
}
