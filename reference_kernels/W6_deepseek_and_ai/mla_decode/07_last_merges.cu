// Rung 7: whoever finishes a sequence's last part merges it, with its own part still in registers.
//
// Changed     no kernel merges. A block that has a part of a sequence counts itself in; the one that comes
//             last adds the parts of the others to its own registers and writes the result. Parts are
//             written as threads hold them, 16 bytes each. A small kernel in front clears the counters and
//             writes zeros for empty sequences; the main kernel starts early.
// Why         without its merge rung 5 takes 275 us instead of 293: the merge begins last, and 34 MB of parts
//             go to memory and come back. Mostly a sequence has two parts: the second one was written long
//             ago by a block that began with it, and the first one need not be written at all.
// Prediction  1.05x at 128 sequences; nothing with 16 sequences, whose parts all end at the same time.
//
// Shapes      q [b, s_q, h, 576]; cache [b * max_pages, 64, 576]; block_table [b, max_pages]; lengths [b];
//             o [b, s_q, h, 512].
// Launch      128 threads for each sequence; then as many blocks as multiprocessors, 384 threads, one or two
//             a cluster.
// Resources   232 registers per consumer, 40 a producer; 225 KB of shared memory; workspace: two parts for
//             each share, 2056 bytes a row, and four bytes for each row tile of a sequence.
// Cost        2 s_q h (576 + 512) sum(lengths) FLOPs; 1152 sum(lengths) bytes, if blocks with the same
//             sequence find each other's tiles in the L2 cache.
// Divides     s_q * h <= 256 and b <= 4096 (the problem says so); nothing else.
// Source      fix-up of parts as in stream-K, M. Osama et al. (2023), but by the last one, so nothing waits.
//             Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kTokens = 64;              // of a page, and of a tile
constexpr int kKey = 576, kValue = 512;  // columns of the cache; the first ones are values, too
constexpr int kRows = 64;                // of q, for a block: row t * h + head of a sequence
constexpr int kThreads = 384, kClearThreads = 128;
constexpr int kPanels = kKey / 64;        // a panel: 64 rows of 64 columns, as TMA swizzles them
constexpr int kPanel = 64 * 128;          // [B]
constexpr int kTile = kPanels * kPanel;   // [B]
constexpr int kQueries = kTile - kPanel;  // [B]: the last panel of the queries is in registers
constexpr int kShared = kQueries + 2 * kTile + 2 * kPanel + 1024;  // two tiles; weights of both consumers
constexpr uint64_t kReadOnce = 0x12f0000000000000, kReadAgain = 0x1000000000000000;  // hints to the L2 cache
constexpr int kMostSequences = 4096;
static_assert(4 * (kMostSequences + 1) <= kTile, "the starts of sequences lie in a tile's place at first");

/// A tile arrives and is released in three parts: the last panel (positions), and the value columns of each
/// consumer.
constexpr int kParts = 3;
__device__ constexpr int first_panel(int part) { return part == 0 ? kPanels - 1 : (part - 1) * 4; }
__device__ constexpr int panels_of(int part) { return part == 0 ? 1 : 4; }

struct Problem {
  const __nv_bfloat16* q;
  const int *table, *lengths;
  __nv_bfloat16* o;
  float4* parts;  // [2 * shares, row tiles, 32, 256]: results of parts of sequences, as threads hold them
  float2* sums;   // [2 * shares, row tiles, 64]: what their exponents are relative to, and their sums
  int* counters;  // [b, row tiles]: parts that are done
  int b, s_q, h, max_pages;
  int groups;  // of rows, one for a block or a pair of blocks
  int shares;  // of all tokens
  float factor;

  __host__ __device__ int rows() const { return s_q * h; }
  __host__ __device__ int row_tiles() const { return (rows() + kRows - 1) / kRows; }
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
/// The same place in block `rank` of the cluster; an arrival at a barrier there.
__device__ uint32_t address_at(const void* p, int rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address(p)), "r"(rank));
  return there;
}
__device__ void arrive_there(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
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
/// A box of the cache, for this block.
__device__ void load(void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier,
                     uint64_t hint) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%3, %4}], [%2], %5;" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row), "l"(hint)
      : "memory");
}
/// The same for both blocks of a pair: each gets it at the same place, and its own barrier is told.
__device__ void load_for_both(void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier,
                              uint64_t hint) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5, %6;" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row), "h"(static_cast<uint16_t>(3)), "l"(hint)
      : "memory");
}
/// A box of q; past the last row of a sequence, zeros.
__device__ void load_rows(void* to, const CUtensorMap* map, int column, int row, int sequence,
                          uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5}], [%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row), "r"(sequence)
      : "memory");
}
__device__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
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

/// Scores: 64 rows x 64 tokens, 16 columns deep; keys lie in shared memory along the depth, queries there or
/// in registers.
__device__ void multiply_scores(float (&d)[32], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LIST32 "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16)
      : "l"(q), "l"(k), "r"(static_cast<int>(add)));
}
__device__ void multiply_scores(float (&d)[32], const uint32_t* q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LIST32
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}"
      : D16(0), D16(16)
      : "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]), "l"(k), "r"(static_cast<int>(add)));
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
/// The tiles of all sequences in one row, cut into shares. No share is empty: of more shares than tiles, only
/// as many exist as there are tiles.
__device__ int sharers(int tiles, int shares) { return min(tiles, shares); }
__device__ int first_tile(int tiles, int share, int sharers) {
  return static_cast<int>(int64_t{tiles} * share / sharers);
}
/// Which share a tile belongs to.
__device__ int share_of(int tile, int tiles, int sharers) {
  return static_cast<int>(((int64_t{tile} + 1) * sharers - 1) / tiles);
}
__device__ int tiles_of(int length) { return (length + kTokens - 1) / kTokens; }

/// starts[s]: the tiles of the sequences before s, for s up to b. By all threads of a block.
__device__ void add_up_tiles(int* starts, const int* lengths, int b) {
  for (int i = threadIdx.x; i < b; i += blockDim.x) starts[i + 1] = tiles_of(lengths[i]);
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x;
    int before = 0;
    for (int first = 0; first < b; first += 32) {
      int sum = first + lane < b ? starts[first + lane + 1] : 0;
#pragma unroll
      for (int offset = 1; offset < 32; offset *= 2) {
        const int below = __shfl_up_sync(kAllLanes, sum, offset);
        if (lane >= offset) sum += below;
      }
      if (first + lane < b) starts[first + lane + 1] = before + sum;
      before += __shfl_sync(kAllLanes, sum, 31);
    }
    if (lane == 0) starts[0] = 0;
  }
  __syncthreads();
}
__device__ int sequence_of(const int* starts, int tile, int b) {
  int low = 0, high = b;  // starts[low] <= tile < starts[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (starts[middle] <= tile ? low : high) = middle;
  }
  return low;
}

/// The part of a sequence that lies in a share: its tiles first to last - 1, counted from the sequence's own
/// first one, which is tile `start` of all.
struct Segment {
  int sequence, length, start, first, last;
  __device__ int tiles() const { return last - first; }
  __device__ bool whole() const { return first == 0 && last == tiles_of(length); }
};
/// Walks over the segments of a share.
struct Walk {
  const int* lengths;
  int left;  // tiles of the share that no segment has had
  Segment now;

  __device__ Walk(const Problem& p, int sequence, int start, int begin, int tiles)
      : lengths(p.lengths), left(tiles) {
    now = {sequence, lengths[sequence], start, begin - start, 0};
    fit();
  }
  __device__ bool more() const { return now.tiles() > 0; }
  __device__ void next() {
    left -= now.tiles();
    now.start += tiles_of(now.length);
    now.last = now.first = 0;
    if (left == 0) return;
    do now.length = lengths[++now.sequence];
    while (now.length == 0);
    fit();
  }

 private:
  __device__ void fit() { now.last = min(tiles_of(now.length), now.first + left); }
};
/// The parts of a sequence: shares first to last.
struct Parts {
  int first, last;
  bool second;  // in its first share another sequence lies in front

  __device__ Parts(const Segment& s, int tiles, int sharers)
      : first(share_of(s.start, tiles, sharers)),
        last(share_of(s.start + tiles_of(s.length) - 1, tiles, sharers)),
        second(first_tile(tiles, first, sharers) < s.start) {}
  __device__ int count() const { return last - first + 1; }
  __device__ int place(int share) const { return 2 * share + (share == first && second); }
};

// ---- the two roles ----------------------------------------------------------------------------------------
struct Barriers {
  uint64_t full[2][kParts], empty[2][kParts], full_q, empty_q;
};
/// The shared memory of a block.
struct Places {
  uint8_t* tiles;
  Barriers* bars;
  float (*tops)[kRows];     // of each consumer: what its last exponents are relative to
  float (*sums)[2][kRows];  // at the end of a segment, even and odd ones
  int* done;                // parts of the sequence that are done; two, too

  __device__ uint8_t* queries() const { return tiles; }
  __device__ uint8_t* tile(int stage) const { return tiles + kQueries + stage * kTile; }
  __device__ uint8_t* weights(int consumer) const { return tiles + kQueries + 2 * kTile + consumer * kPanel; }
};

template <int kBlocks>
__device__ void produce(const CUtensorMap* map_q, const CUtensorMap* map_cache, const Problem& p, Walk walk,
                        const Places& at, int first_row, int rank) {
  Barriers& bars = *at.bars;
  const uint64_t hint = p.groups == 1 ? kReadOnce : kReadAgain;  // by the blocks of other groups
  int phases = 3, phase_q = 1;                                   // a bit for each stage
  for (; walk.more(); walk.next()) {
    const Segment& s = walk.now;
    wait(&bars.empty_q, phase_q);
    phase_q ^= 1;
    arrive_and_expect(&bars.full_q, kQueries);
    for (int panel = 0; panel < kPanels - 1; ++panel)
      load_rows(at.queries() + panel * kPanel, map_q, panel * 64, first_row, s.sequence, &bars.full_q);
    const int* const pages = p.table + int64_t{s.sequence} * p.max_pages;
    int page = pages[s.first];
    for (int tile = s.first; tile < s.last; ++tile) {
      const int next = tile + 1 < s.last ? pages[tile + 1] : 0;  // asked for before this tile's copies
      const int stage = (tile - s.first) % 2;
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        wait(&bars.empty[stage][part], phases >> stage & 1);
        arrive_and_expect(&bars.full[stage][part], panels_of(part) * kPanel);
        for (int i = 0; i < panels_of(part); ++i) {
          const int panel = first_panel(part) + i;
          uint8_t* const to = at.tile(stage) + panel * kPanel;
          if (kBlocks == 1)
            load(to, map_cache, panel * 64, page * kTokens, &bars.full[stage][part], hint);
          else
            load_for_both(to + rank * kPanel / 2, map_cache, panel * 64, page * kTokens + rank * kTokens / 2,
                          &bars.full[stage][part], hint);
        }
      }
      phases ^= 1 << stage;
      page = next;
    }
  }
}

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
template <int kBlocks>
struct Consumer {
  const Problem& p;
  const Places& at;
  const int me, first_row;    // 0 or 1; of the block's rows
  const uint32_t bars_there;  // the barriers of another block of the cluster, for some threads
  float o[128], s[32];
  uint32_t w[16], q[16];  // weights; the last 64 columns of the queries
  float top[2], sum[2];   // of rows row and row + 8

  __device__ int row() const { return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4; }

  /// By a thread for each block of the cluster.
  __device__ void release(int stage, int part) const {
    if (kBlocks == 1) {
      if (threadIdx.x % 128 == 0) arrive(&at.bars->empty[stage][part]);
    } else if (threadIdx.x % 32 == 0 && threadIdx.x % 128 / 32 < kBlocks) {
      arrive_there(bars_there + (address(&at.bars->empty[stage][part]) - address(at.bars)));
    }
  }
  __device__ void release_queries() const {
    if (threadIdx.x % 128 == 0) arrive(&at.bars->empty_q);
  }
  __device__ void load_last_queries(int sequence) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = first_row + row() + half * 8;
      const __nv_bfloat16* const from = p.q + (int64_t{sequence} * p.rows() + r) * kKey + kKey - 64;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        q[i / 2 * 4 + i % 2 * 2 + half] =
            r < p.rows() ? *reinterpret_cast<const uint32_t*>(from + i * 8 + threadIdx.x % 4 * 2) : 0;
    }
  }
  /// Starts the scores of a tile; its parts come one after another, the last panel first.
  __device__ void ask_for_scores(int stage, int phase) {
    const uint64_t queries = matrix(at.queries(), 0), k = matrix(at.tile(stage), 0);
    wait(&at.bars->full[stage][0], phase);
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < 4; ++i) multiply_scores(s, q + i * 4, k + bytes_on(kQueries + i * 32), i > 0);
#pragma unroll
    for (int part = 1; part < kParts; ++part) {
      wait(&at.bars->full[stage][part], phase);
      begin_multiplying();
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int on = (first_panel(part) + i / 4) * kPanel + i % 4 * 32;
        multiply_scores(s, queries + bytes_on(on), k + bytes_on(on), true);
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
    const uint64_t v = values(stage), weights = matrix(at.weights(1 - me), 0);
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < 4; ++i) multiply_values(o, weights + bytes_on(i * 32), v + bytes_on(i * 2048), true);
    commit();
  }
  __device__ void mask(const Segment& segment, int tile) {
    const int rest = segment.length - tile * kTokens;
    if (rest - (p.s_q - 1) >= kTokens) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int token = (first_row + row() + half * 8) / p.h;
      const int seen = rest - (p.s_q - 1 - token) - static_cast<int>(threadIdx.x % 4 * 2);
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (j * 8 + i >= seen) s[j * 4 + half * 2 + i] = -INFINITY;
    }
  }
  /// What lies behind the last token may be NaN, and zero times NaN is NaN.
  __device__ void clear_values(const Segment& segment, int tile, int stage) {
    const int valid = segment.length - tile * kTokens;
    if (valid >= kTokens) return;
    uint8_t* const from = at.tile(stage) + me * 4 * kPanel;
    for (int i = threadIdx.x % 128; i < 4 * 8 * (kTokens - valid); i += 128)
      *reinterpret_cast<uint4*>(from + i % 4 * kPanel + (valid + i / 32) * 128 + i / 4 % 8 * 16) = uint4{};
    show_to_others();
    named_wait(kOneConsumer + me, 128);
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
      uint8_t* const to = at.weights(me) + r * 128 + lane % 4 * 4;
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
    release(0, 0);
    if (last) release_queries();
    mask(segment, tile);
    next_tops(next);
    move_tops(next, by);
    to_weights();
    publish();
    if (matters(by)) shrink(by);
    clear_values(segment, tile, 0);
    ask_for_own(0);
    wait_for_products<0>();
    release(0, 1);
    if (tile + 1 == segment.last) return;
    wait_for_others(next);
    move_tops(next, by);
    if (matters(by)) shrink(by);
    clear_values(segment, tile + 1, 1);
    ask_for_others(1);
    wait_for_products<0>();
    release(1, 1);
  }
  /// The second consumer's part: its scores while the first has its softmax, its softmax while the first
  /// multiplies, and then both products. A product cannot be started earlier: a warp waits until the tensor
  /// cores take it, and its softmax would wait, too.
  __device__ void second_part(const Segment& segment, int tile, int phase, bool last) {
    float next[2], by[2];
    if (tile + 1 == segment.last) {
      release_queries();
      wait_for_others(next);
      move_tops(next, by);
      if (matters(by)) shrink(by);
      clear_values(segment, tile, 0);
      ask_for_others(0);
      wait_for_products<0>();
      release(0, 2);
      return;
    }
    ask_for_scores(1, phase);
    wait_for_products<0>();
    release(1, 0);
    if (last) release_queries();
    mask(segment, tile + 1);
    wait_for_others(next);
    move_tops(next, by);
    if (matters(by)) shrink(by);
    next_tops(next);
    move_tops(next, by);
    to_weights();
    publish();
    clear_values(segment, tile, 0);
    ask_for_others(0);
    wait_for_products<0>();
    release(0, 2);
    if (matters(by)) shrink(by);
    clear_values(segment, tile + 1, 1);
    ask_for_own(1);
    wait_for_products<0>();
    release(1, 2);
  }

  /// The last part to be done takes the others.
  __device__ void add_part(int place, float (&total)[2]) {
    const int64_t tile = int64_t{place} * p.row_tiles() + first_row / kRows;
    float by[2];
    bool higher[2];  // this one's maximum
    float2 read[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      read[half] = __ldcg(p.sums + tile * kRows + row() + half * 8);
      const float difference = top[half] - read[half].x;
      higher[half] = top[half] >= read[half].x;
      by[half] = top[half] == read[half].x ? 1.0f : power_of_two(-fabsf(difference));
      top[half] = fmaxf(top[half], read[half].x);
    }
    // The part with the lower maximum is made smaller, so the bits are the same whichever part is last.
    const auto add = [&](float own, float other, int half) {
      return higher[half] ? fmaf(other, by[half], own) : fmaf(own, by[half], other);
    };
    total[0] = add(total[0], read[0].y, 0), total[1] = add(total[1], read[1].y, 1);
    const float4* const part = p.parts + tile * 32 * 256 + me * 128 + threadIdx.x % 128;
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      const float4 four = __ldcg(part + j * 256);
      o[j * 4] = add(o[j * 4], four.x, 0);
      o[j * 4 + 1] = add(o[j * 4 + 1], four.y, 0);
      o[j * 4 + 2] = add(o[j * 4 + 2], four.z, 1);
      o[j * 4 + 3] = add(o[j * 4 + 3], four.w, 1);
    }
  }
  __device__ void write_part(int place, const float (&total)[2]) {
    const int64_t tile = int64_t{place} * p.row_tiles() + first_row / kRows;
    if (me == 0 && threadIdx.x % 4 == 0)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        p.sums[tile * kRows + row() + half * 8] = make_float2(top[half], total[half]);
    float4* const part = p.parts + tile * 32 * 256 + me * 128 + threadIdx.x % 128;
#pragma unroll
    for (int j = 0; j < 32; ++j)
      part[j * 256] = make_float4(o[j * 4], o[j * 4 + 1], o[j * 4 + 2], o[j * 4 + 3]);
  }
  __device__ void write_result(int sequence, const float (&total)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = first_row + row() + half * 8;
      const float scale = total[half] > 0 ? 1 / total[half] : 0.0f;
      __nv_bfloat16* const to =
          p.o + (int64_t{sequence} * p.rows() + r) * kValue + me * 256 + threadIdx.x % 4 * 8;
#pragma unroll
      for (int j = 0; j < 32; j += 4) {
        uint32_t own[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          own[i] = pair(o[(j + i) * 4 + half * 2] * scale, o[(j + i) * 4 + half * 2 + 1] * scale);
        const uint4 eight = gather_columns(own);
        if (r < p.rows()) *reinterpret_cast<uint4*>(to + j * 8) = eight;
      }
    }
  }
  /// One thread counts this block in, or looks how many have been; both consumers learn what it found.
  __device__ int parts_done(int* counter, int count, int odd) {
    if (me == 0 && threadIdx.x % 128 == 0) {
      __threadfence();  // what the block has written comes before the count
      at.done[odd] = atomicAdd(counter, count);
      __threadfence();
    }
    named_wait(kBothConsumers, 256);
    return at.done[odd];
  }
  /// A part of a sequence is done; so may be the sequence.
  __device__ void finish(const Segment& segment, int share, int tiles, int sharers, int odd) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 1);
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 2);
      if (threadIdx.x % 4 == 0) at.sums[odd][me][row() + half * 8] = sum[half];
    }
    const bool whole = segment.whole();
    int* const counter = p.counters + segment.sequence * p.row_tiles() + first_row / kRows;
    int done = 0;
    if (whole)
      named_wait(kBothConsumers, 256);
    else
      done = parts_done(counter, 0, odd);
    float total[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) total[half] = sum[half] + at.sums[odd][1 - me][row() + half * 8];
    if (!whole) {
      const Parts parts(segment, tiles, sharers);
      if (done + 1 < parts.count() || parts.count() > 2) {
        write_part(parts.place(share), total);
        __threadfence();
        named_wait(kBothConsumers, 256);  // all of the part is written, and `done` has been read
        done = parts_done(counter, 1, odd);
        if (done + 1 < parts.count()) return;
      }
      if (parts.count() > 2) {  // all of them, in their order, so that the result does not depend on the last
        top[0] = top[1] = -INFINITY, total[0] = total[1] = 0;
#pragma unroll
        for (float& x : o) x = 0;
      }
      for (int i = parts.first; i <= parts.last; ++i)
        if (i != share || parts.count() > 2) add_part(parts.place(i), total);
    }
    write_result(segment.sequence, total);
  }

  __device__ void run(Walk walk, int share, int tiles, int sharers) {
    wait_for_kernel_in_front();
    int phase = 0, phase_q = 0;  // of this consumer's stage
    for (int number = 0; walk.more(); walk.next(), ++number) {
      const Segment segment = walk.now;
      top[0] = top[1] = -INFINITY, sum[0] = sum[1] = 0;
#pragma unroll
      for (float& x : o) x = 0;
      load_last_queries(segment.sequence);
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
      finish(segment, share, tiles, sharers, number % 2);
    }
  }
};

template <int kBlocks>
__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    decode(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_cache,
           const Problem p) {
  extern __shared__ uint8_t shared[];
  __shared__ Barriers bars;
  __shared__ float tops[2][kRows], sums[2][2][kRows];
  __shared__ int done[2];
  const Places at{shared + (1024 - address(shared) % 1024) % 1024, &bars, tops, sums, done};
  int* const starts = reinterpret_cast<int*>(at.tile(0));
  const int rank = blockIdx.x % kBlocks, cluster = blockIdx.x / kBlocks, group = threadIdx.x / 128;
  const int share = cluster / p.groups, first_row = (cluster % p.groups * kBlocks + rank) * kRows;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; ++stage)
      for (int part = 0; part < kParts; ++part)
        init(&bars.full[stage][part], 1), init(&bars.empty[stage][part], kBlocks);
    init(&bars.full_q, 1), init(&bars.empty_q, 2);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  add_up_tiles(starts, p.lengths, p.b);
  const int tiles = starts[p.b], shares = sharers(tiles, p.shares);
  int begin = 0, end = 0, sequence = 0, start = 0;
  if (share < shares) {
    begin = first_tile(tiles, share, shares), end = first_tile(tiles, share + 1, shares);
    sequence = sequence_of(starts, begin, p.b);
    start = starts[sequence];
  }
  show_to_others();  // copies will overwrite the starts
  if constexpr (kBlocks == 1)
    __syncthreads();
  else
    meet_cluster();
  if (begin == end) return;  // and so does the other block of the cluster
  const Walk walk(p, sequence, start, begin, end - begin);
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) produce<kBlocks>(&map_q, &map_cache, p, walk, at, first_row, rank);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    // Warp 0 of a consumer tells block 0, warp 1 block 1.
    const uint32_t there = kBlocks > 1 ? address_at(&bars, threadIdx.x / 32 % 4 % kBlocks) : 0;
    Consumer<kBlocks> consumer{p, at, group - 1, first_row, there};
    consumer.run(walk, share, tiles, shares);
  }
  if constexpr (kBlocks > 1) meet_cluster();  // no block leaves while the other may arrive at its barriers
}

/// A block for a sequence: no part of it is done. Where there is no token, the result is zero.
__global__ void __launch_bounds__(kClearThreads) clear(const Problem p) {
  let_next_kernel_begin();
  const int s = blockIdx.x;
  for (int i = threadIdx.x; i < p.row_tiles(); i += kClearThreads) p.counters[s * p.row_tiles() + i] = 0;
  if (p.lengths[s] > 0) return;
  uint4* const to = reinterpret_cast<uint4*>(p.o + int64_t{s} * p.rows() * kValue);
  for (int i = threadIdx.x; i < p.rows() * (kValue / 8); i += kClearThreads) to[i] = uint4{};
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

/// Clusters of so many blocks that run at once.
template <int kBlocks>
int clusters_at_once() {
  int device = 0, processors = 0, clusters = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(decode<kBlocks>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  if (kBlocks > 1) {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = kBlocks, cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(kBlocks), config.blockDim = dim3(kThreads), config.dynamicSmemBytes = kShared;
    config.attrs = &cluster, config.numAttrs = 1;
    if (cudaOccupancyMaxActiveClusters(&clusters, decode<kBlocks>, &config) == cudaSuccess && clusters > 0)
      return clusters;
  }
  return processors / kBlocks > 0 ? processors / kBlocks : 1;
}
struct Division {
  int blocks, groups, shares;  // of a cluster; of rows; of tokens
};
Division division_of(int64_t rows) {
  const int row_tiles = static_cast<int>((rows + kRows - 1) / kRows), blocks = row_tiles % 2 == 0 ? 2 : 1;
  const int groups = row_tiles / blocks;
  const int at_once = blocks == 2 ? clusters_at_once<2>() : clusters_at_once<1>();
  return {blocks, groups, at_once / groups > 0 ? at_once / groups : 1};
}

int64_t row_tiles_of(int64_t rows) { return (rows + kRows - 1) / kRows; }

extern "C" size_t workspace_bytes(int64_t b, int64_t s_q, int64_t h, int64_t /*max_pages*/) {
  const int64_t tiles = row_tiles_of(s_q * h), rows = 2 * division_of(s_q * h).shares * tiles * kRows;
  return static_cast<size_t>(rows) * (kValue * sizeof(float) + sizeof(float2)) +
         static_cast<size_t>(b * tiles) * sizeof(int);
}

extern "C" void launch(const __nv_bfloat16* q /*[b,s_q,h,576]*/,
                       const __nv_bfloat16* cache /*[b * max_pages,64,576]*/,
                       const int32_t* block_table /*[b,max_pages]*/, const int32_t* lengths /*[b]*/,
                       __nv_bfloat16* o /*[b,s_q,h,512]*/, int64_t b, int64_t s_q, int64_t h,
                       int64_t max_pages, void* workspace, cudaStream_t stream) {
  const int64_t rows = s_q * h;
  const Division d = division_of(rows);
  const int64_t padded_rows = 2 * d.shares * row_tiles_of(rows) * kRows;
  float4* const parts = static_cast<float4*>(workspace);
  float2* const sums = reinterpret_cast<float2*>(parts + padded_rows * (kValue / 4));
  const Problem p{q,
                  block_table,
                  lengths,
                  o,
                  parts,
                  sums,
                  reinterpret_cast<int*>(sums + padded_rows),
                  static_cast<int>(b),
                  static_cast<int>(s_q),
                  static_cast<int>(h),
                  static_cast<int>(max_pages),
                  d.groups,
                  d.shares,
                  static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kKey)))};
  const cuuint64_t size_q[] = {kKey, static_cast<cuuint64_t>(rows), static_cast<cuuint64_t>(b)};
  const cuuint64_t size_cache[] = {kKey, static_cast<cuuint64_t>(b * max_pages * kTokens)};
  const cuuint32_t box_q[] = {64, kRows, 1};
  const cuuint32_t box_cache[] = {64, static_cast<cuuint32_t>(kTokens / d.blocks)};
  const CUtensorMap map_q = map_of(q, 3, size_q, box_q), map_cache = map_of(cache, 2, size_cache, box_cache);
  clear<<<static_cast<unsigned>(b), kClearThreads, 0, stream>>>(p);
  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(d.blocks * d.groups * d.shares));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kShared;
  config.stream = stream;
  config.attrs = early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, d.blocks == 2 ? decode<2> : decode<1>, map_q, map_cache, p);
}
