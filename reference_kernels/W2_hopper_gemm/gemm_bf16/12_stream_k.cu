// Rung 12: equal shares of the steps, and a table that was measured.
//
// Changed     another way to divide k, over the whole chip (stream-k): all waves of tiles but the last two are
//             dealt out as before, and the steps of the remaining tiles are divided evenly, wherever a tile ends.
//             Blocks that compute parts of a tile exchange sums through the workspace; those whose work ends
//             with it add up some columns each. A kernel that resets their counters runs in front, and this one
//             begins before it has ended (a programmatic launch).
//             The estimate that chooses an entry of the table is fitted to times of all entries at 27 sizes,
//             and the table has tiles of 64 rows that split k. m <= 16: fewer, wider blocks, and only as many
//             clusters as run at once.
// Why         an H100 has room for 30 clusters of four, not 33: groups of multiprocessors have odd sizes. So the
//             32 tiles of 1024 x 1024 x 16384, in four parts, took two waves, and 4096^3 has 3.88 waves of tiles.
// Prediction  of equal shares: 1.5x rung 11 at 1024 x 1024 x 16384, 1.03x at 4096^3. Both failed, 0.77x and 0.79x:
//             blocks that work at different k find less of A and B in the L2 cache, and the sums cost 10 to 30
//             us. They won at 2 of 40 sizes, which have thousands of tiles. So the estimate charges for them.
//             Of the fitted estimate: 0.95x cuBLASLt in the geometric mean over the 40 sizes.
// Came        1.35 ms on an H100, 816.79 TFLOP/s, 1.01 times the rung before. 98 % of the native baseline.
//
// Shapes      a [m, k], b [k, n], c [m, n], bf16, row-major.
// Launch      one block per multiprocessor, or per tile if there are fewer; 128 threads and 128 for each 64 rows
//             of a tile; clusters of two or four where blocks share an operand or a tile. m <= 16 as rung 11.
// Resources   as rung 9. Workspace: two tiles of sums a block, and counters.
// Cost        2 m n k FLOPs; loads as rung 9; and the sums of divided tiles, to L2 and back.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so); m anything.
// Source      stream-k: M. Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
//             Multiplication on the GPU", 2023. Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;

constexpr int kDepth = 64, kMostStages = 8;
constexpr int kBox = 64 * 64 * sizeof(bf16), kSharedLimit = 227 * 1024;  // [B]

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// A barrier in shared memory: a phase ends with the last of its arrivals, when the bytes that it was told to
// expect have arrived, too.
__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}
__device__ void arrive_and_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes) : "memory");
}
__device__ void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}
/// The same place in the shared memory of block `rank` of the cluster.
__device__ uint32_t address_at(const void* p, int rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address(p)), "r"(rank));
  return there;
}
__device__ void arrive_at(uint64_t* barrier, int rank) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address_at(barrier, rank)) : "memory");
}
/// Until the phase of this parity is over.
__device__ void wait(uint64_t* barrier, int parity) {
  uint32_t over = 0;
  while (!over)
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}" : "=r"(over) : "r"(address(barrier)), "r"(parity) : "memory");
}
/// The copy engine fetches the box of `map` at (column, row), fills with zeros what lies outside, and signals
/// the barrier.
__device__ void load(void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                   address(to)), "l"(map), "r"(address(barrier)), "r"(column), "r"(row) : "memory");
}
/// The same for some blocks of the cluster, one bit each: each gets it at the same place, and its own barrier
/// is signalled.
__device__ void load_for(int blocks, void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(address(to)), "l"(map), "r"(address(barrier)), "r"(column), "r"(row),
      "h"(static_cast<uint16_t>(blocks)) : "memory");
}
/// The same in the other direction; what lies outside of C is not stored.
__device__ void store(const CUtensorMap* map, const void* from, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(address(from)),
               "r"(column), "r"(row) : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Descriptions of matrices lie in memory, too.
__device__ void fetch(const CUtensorMap* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

/// Where a matrix lies, for wgmma: rows of 128 bytes, swizzled as TMA writes them; `leading` and `stride` [B]
/// say where the next 64 columns and the next eight rows begin.
__device__ uint64_t matrix(const void* start, int leading, int stride) {
  return static_cast<uint64_t>((address(start) & 0x3ffff) / 16) | static_cast<uint64_t>(leading / 16) << 16 |
         static_cast<uint64_t>(stride / 16) << 32 | uint64_t{1} << 62;
}

// The registers of 64 x 16, 64 x 64 … results, as text and as operands.
#define R8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define R32 \
  R8 ", %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define R64 \
  R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define R96 \
  R64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define R128 \
  R96 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D8(i) D4(i), D4(i + 4)
#define D32(i) D8(i), D8(i + 8), D8(i + 16), D8(i + 24)
/// d = a * b, or d += a * b: 64 x `columns` results, 16 deep, by four warps. Starts it, does not wait. `ways`:
/// which of the operands lie along m or n in memory, not along k.
#define MULTIPLY(columns, registers, at_a, at_b, at_add, ways, ...)                                          \
  __device__ void multiply(float (&d)[columns / 2], uint64_t a, uint64_t b, bool add) {                      \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #at_add ", 0;\n"                                       \
                 "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.bf16.bf16 {" registers "}, %" #at_a   \
                 ", %" #at_b ", p, 1, 1, " ways ";\n}"                                                       \
                 : __VA_ARGS__                                                                               \
                 : "l"(a), "l"(b), "r"(static_cast<int>(add)));                                              \
  }
MULTIPLY(16, R8, 8, 9, 10, "1, 0", D8(0))
MULTIPLY(64, R32, 32, 33, 34, "0, 1", D32(0))
MULTIPLY(128, R64, 64, 65, 66, "0, 1", D32(0), D32(32))
MULTIPLY(192, R96, 96, 97, 98, "0, 1", D32(0), D32(32), D32(64))
MULTIPLY(256, R128, 128, 129, 130, "0, 1", D32(0), D32(32), D32(64), D32(96))

__device__ void begin_multiplying() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kOnTheirWay>
__device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOnTheirWay) : "memory");
}

/// Writes 64 x 64 results of a warp group into a box: 16-byte piece p of row r lies at p ^ (r % 8), as TMA
/// expects it.
__device__ void fill(uint8_t* box, const float* d) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int piece = 0; piece < 8; ++piece)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = threadIdx.x / 32 % 4 * 16 + half * 8 + lane / 4;
      *reinterpret_cast<__nv_bfloat162*>(box + row * 128 + (piece ^ row % 8) * 16 + lane % 4 * 4) =
          __floats2bfloat162_rn(d[piece * 4 + half * 2], d[piece * 4 + half * 2 + 1]);
    }
}
/// The threads of one warp group meet.
__device__ void meet(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory"); }
/// All threads of the cluster meet; what they wrote into shared memory is seen.
__device__ void meet_cluster() { asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory"); }
/// A tile, and the blocks of a cluster: so many above each other, which share B; side by side, which share A;
/// and so many that split k.
template <int kRows_, int kColumns_, int kAbove_, int kAside_, int kSplit_>
struct Tile {
  static constexpr int kRows = kRows_, kColumns = kColumns_, kAbove = kAbove_, kAside = kAside_, kSplit = kSplit_;
  static constexpr int kConsumers = kRows / 64, kThreads = 128 * (1 + kConsumers), kCluster = kAbove * kAside * kSplit;
  static constexpr int kBytesA = kRows / 64 * kBox, kBytesB = kColumns / 64 * kBox;
  static constexpr int kPieces = kColumns / kSplit / 64;  // of 64 columns, of the results
  static constexpr int kOutBoxes = kPieces % 2 ? kPieces : 2;        // a consumer's, on their way to C, in turns
  static constexpr int kOut = kConsumers * kOutBoxes * kBox;
  static constexpr int kFit = (kSharedLimit - 1024 - kOut - 256) / (kBytesA + kBytesB), kStages = kFit < kMostStages ? kFit : kMostStages;
  static constexpr int kSharedBytes = kStages * (kBytesA + kBytesB) + kOut + 1024;
  static constexpr int kBand = 2048 / (kRows * kAbove);  // rows of clusters that are visited together
};

/// Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may be
/// lower.
template <class T>
__device__ void place_of(int tile, int rows, int columns, int& row, int& column) {
  const int band = tile / (T::kBand * columns), within = tile % (T::kBand * columns);
  const int height = rows - band * T::kBand < T::kBand ? rows - band * T::kBand : T::kBand;
  row = band * T::kBand + within % height, column = within / height;
}

/// Sums over the blocks that split k: each has a share of the columns, and adds up in place what the others
/// send it.
template <class T>
__device__ void add_up(float (&d)[T::kColumns / 2], float4* inbox, int rank, int consumer) {
  constexpr int kShare = T::kColumns / T::kSplit / 2, kPeers = T::kAbove * T::kAside;
  const int split = rank / kPeers;
  const auto place = [&](int sender, int i) { return ((sender * T::kConsumers + consumer) * (kShare / 4) + i) * 128 + threadIdx.x % 128; };
  meet_cluster();  // the stages of all of them are empty
#pragma unroll
  for (int to = 0; to < T::kSplit; ++to) {
    if (to == split) continue;
    const uint32_t there = address_at(inbox + place(split < to ? split : split - 1, 0), to * kPeers + rank % kPeers);
#pragma unroll
    for (int i = 0; i < kShare / 4; ++i) {
      const float* const four = d + to * kShare + i * 4;
      asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there + i * 128 * 16), "f"(four[0]), "f"(four[1]),
                   "f"(four[2]), "f"(four[3]) : "memory");
    }
  }
  meet_cluster();  // the stages of all of them are empty
#pragma unroll
  for (int to = 0; to < T::kSplit; ++to)
    if (to == split)
#pragma unroll
      for (int i = 0; i < kShare / 4; ++i)
#pragma unroll
        for (int sender = 0; sender < T::kSplit - 1; ++sender) {
          const float4 theirs = inbox[place(sender, i)];
          float* const four = d + to * kShare + i * 4;
          four[0] += theirs.x, four[1] += theirs.y, four[2] += theirs.z, four[3] += theirs.w;
        }
}

template <class T>
__global__ void __cluster_dims__(T::kCluster, 1, 1) __launch_bounds__(T::kThreads, 1)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c,
         int m, int k, int n) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full[T::kStages], empty[T::kStages];
  uint8_t* const stages = shared + (1024 - address(shared) % 1024) % 1024;
  const auto a_tile = [&](int stage) { return stages + stage * (T::kBytesA + T::kBytesB); };
  const auto b_tile = [&](int stage) { return a_tile(stage) + T::kBytesA; };
  if (threadIdx.x == 0) {
    fetch(&map_a), fetch(&map_b);
    for (int i = 0; i < T::kStages; ++i) init(full + i, 1), init(empty + i, T::kConsumers * (T::kAbove + T::kAside - 1));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if constexpr (T::kCluster > 1) meet_cluster(); else __syncthreads();

  const int rank = T::kCluster > 1 ? blockIdx.x % T::kCluster : 0;
  const int aside = rank % T::kAside, above = rank / T::kAside % T::kAbove, split = rank / (T::kAside * T::kAbove);
  const int rows = (m + T::kAbove * T::kRows - 1) / (T::kAbove * T::kRows), columns = (n + T::kAside * T::kColumns - 1) / (T::kAside * T::kColumns);
  const int all_steps = (k + kDepth - 1) / kDepth;
  const int begin = static_cast<int>(static_cast<int64_t>(all_steps) * split / T::kSplit), end = static_cast<int>(static_cast<int64_t>(all_steps) * (split + 1) / T::kSplit);
  int stage = 0, phase = 0;
  const auto advance = [&] { if (++stage == T::kStages) stage = 0, phase ^= 1; };
  const int group = threadIdx.x / 128;
  if (group == 0) {  // the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (int tile = blockIdx.x / T::kCluster; tile < rows * columns; tile += gridDim.x / T::kCluster) {
        int row, column;
        place_of<T>(tile, rows, columns, row, column);
        row = (row * T::kAbove + above) * T::kRows, column = (column * T::kAside + aside) * T::kColumns;
        for (int step = begin; step < end; ++step, advance()) {
          wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
          arrive_and_expect(full + stage, T::kBytesA + T::kBytesB);
          if constexpr (T::kAside > 1) {
            constexpr int kPart = T::kRows / T::kAside;
            load_for(((1 << T::kAside) - 1) << (rank - aside), a_tile(stage) + aside * kPart * 128, &map_a, step * kDepth, row + aside * kPart, full + stage);
          } else {
            load(a_tile(stage), &map_a, step * kDepth, row, full + stage);
          }
          for (int j = above; j < T::kColumns / 64; j += T::kAbove)
            if constexpr (T::kAbove > 1) {
              int blocks = 0;
              for (int i = 0; i < T::kAbove; ++i) blocks |= 1 << ((split * T::kAbove + i) * T::kAside + aside);
              load_for(blocks, b_tile(stage) + j * kBox, &map_b, column + j * 64, step * kDepth, full + stage);
            } else {
              load(b_tile(stage) + j * kBox, &map_b, column + j * 64, step * kDepth, full + stage);
            }
        }
      }
    if constexpr (T::kSplit > 1) {
      __syncwarp();
      meet_cluster(), meet_cluster();  // as the consumers do in add_up()
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(T::kConsumers == 1 ? 240 : 232));
    const int consumer = group - 1, me = threadIdx.x % 128;
    uint8_t* const boxes = stages + T::kStages * (T::kBytesA + T::kBytesB) + consumer * T::kOutBoxes * kBox;
    // Whom this thread tells that a stage is empty: one of those that write into it.
    const bool tells = me < T::kCluster && me / (T::kAside * T::kAbove) == split && (me % T::kAside == aside || me / T::kAside % T::kAbove == above);
    float d[T::kColumns / 2];
    for (int tile = blockIdx.x / T::kCluster; tile < rows * columns; tile += gridDim.x / T::kCluster) {
      int row, column, before = 0;
      place_of<T>(tile, rows, columns, row, column);
      row = (row * T::kAbove + above) * T::kRows + consumer * 64, column = (column * T::kAside + aside) * T::kColumns;
      const auto release = [&](int which) {
        if constexpr (T::kCluster > 1) {
          if (tells) arrive_at(empty + which, me);
        } else if (me == 0) {
          arrive(empty + which);
        }
      };
      if (T::kSplit > 1 && begin == end)
        for (float& each : d) each = 0;
      for (int step = begin; step < end; ++step, advance()) {
        wait(full + stage, phase);
        begin_multiplying();
#pragma unroll
        for (int i = 0; i < kDepth / 16; ++i)
          multiply(d, matrix(a_tile(stage) + consumer * kBox + i * 32, 0, 1024), matrix(b_tile(stage) + i * 2048, kBox, 1024), step - begin + i > 0);
        commit();
        wait_for_products<1>();  // those of the step before
        if (step > begin) release(before);
        before = stage;
      }
      wait_for_products<0>();
      if (begin < end) release(before);

      constexpr int kShare = T::kColumns / T::kSplit;
      const auto write = [&](const float* sum, int first_column) {
#pragma unroll
        for (int j = 0; j < kShare / 64; ++j) {
          uint8_t* const box = boxes + j % T::kOutBoxes * kBox;
          if (me == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(T::kOutBoxes - 1) : "memory");
          meet(group);
          fill(box, sum + j * 32);
          asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
          meet(group);
          if (me == 0) store(&map_c, box, first_column + j * 64, row);
        }
      };
      if constexpr (T::kSplit > 1) add_up<T>(d, reinterpret_cast<float4*>(stages), rank, consumer);
#pragma unroll
      for (int part = 0; part < T::kSplit; ++part)
        if (part == split) write(d + part * (kShare / 2), column + part * kShare);
    }
    if (me == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  if constexpr (T::kCluster > 1 && T::kSplit == 1) meet_cluster();  // no block leaves while others may arrive at its barriers
}

// ---- equal shares ---------------------------------------------------------------------------------------------
__device__ void let_next_kernel_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait_for_kernel_in_front() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// A tile, or some steps of it.
struct Piece {
  int tile, begin, end;
};
/// The pieces of this block: whole tiles, then its share of the steps of the tiles from `whole` on.
struct Schedule {
  int tiles, steps, whole;
  int tile, at, until;

  __device__ Schedule(int tiles_, int steps_, int whole_) : tiles(tiles_), steps(steps_), whole(whole_) {
    tile = blockIdx.x, at = start_of(blockIdx.x), until = start_of(blockIdx.x + 1);
  }
  /// The first step of a block's share, counted from tile `whole` on.
  __device__ int start_of(int block) const {
    return static_cast<int>(static_cast<uint64_t>((tiles - whole) * steps) * block / gridDim.x);
  }
  /// Whose share holds that step.
  __device__ int owner_of(int step) const {
    return static_cast<int>((static_cast<uint64_t>(step + 1) * gridDim.x - 1) / static_cast<unsigned>((tiles - whole) * steps));
  }
  __device__ bool next(Piece& piece) {
    if (tile < whole) {
      piece = {tile, 0, steps};
      tile += gridDim.x;
      return true;
    }
    if (at >= until) return false;
    const int which = at / steps, begin = at - which * steps, left = until - at;
    piece = {whole + which, begin, left < steps - begin ? begin + left : steps};
    at += piece.end - begin;
    return true;
  }
};

__global__ void reset(unsigned* counters, int count) {
  let_next_kernel_begin();
  for (int i = threadIdx.x; i < count; i += blockDim.x) counters[i] = 0;
}

template <class T>
__global__ void __launch_bounds__(T::kThreads, 1)
    shares(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c,
           int m, int k, int n, int whole, float4* sums, unsigned* counters) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full[T::kStages], empty[T::kStages];
  uint8_t* const stages = shared + (1024 - address(shared) % 1024) % 1024;
  const auto a_tile = [&](int stage) { return stages + stage * (T::kBytesA + T::kBytesB); };
  const auto b_tile = [&](int stage) { return a_tile(stage) + T::kBytesA; };
  if (threadIdx.x == 0) {
    fetch(&map_a), fetch(&map_b);
    for (int i = 0; i < T::kStages; ++i) init(full + i, 1), init(empty + i, T::kConsumers);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
  }
  __syncthreads();

  const int rows = (m + T::kRows - 1) / T::kRows, columns = (n + T::kColumns - 1) / T::kColumns, steps = (k + kDepth - 1) / kDepth;
  Schedule schedule(rows * columns, steps, whole);
  Piece piece;
  int stage = 0, phase = 0;
  const auto advance = [&] { if (++stage == T::kStages) stage = 0, phase ^= 1; };
  const int group = threadIdx.x / 128;
  if (group == 0) {  // the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      while (schedule.next(piece)) {
        int row, column;
        place_of<T>(piece.tile, rows, columns, row, column);
        for (int step = piece.begin; step < piece.end; ++step, advance()) {
          wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
          arrive_and_expect(full + stage, T::kBytesA + T::kBytesB);
          load(a_tile(stage), &map_a, step * kDepth, row * T::kRows, full + stage);
          for (int j = 0; j < T::kColumns / 64; ++j)
            load(b_tile(stage) + j * kBox, &map_b, column * T::kColumns + j * 64, step * kDepth, full + stage);
        }
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(T::kConsumers == 1 ? 240 : 232));
    const int consumer = group - 1, me = threadIdx.x % 128;
    uint8_t* const boxes = stages + T::kStages * (T::kBytesA + T::kBytesB) + consumer * T::kOutBoxes * kBox;
    float d[T::kColumns / 2];
    while (schedule.next(piece)) {
      int row, column, before = 0;
      place_of<T>(piece.tile, rows, columns, row, column);
      for (int step = piece.begin; step < piece.end; ++step, advance()) {
        wait(full + stage, phase);
        begin_multiplying();
#pragma unroll
        for (int i = 0; i < kDepth / 16; ++i)
          multiply(d, matrix(a_tile(stage) + consumer * kBox + i * 32, 0, 1024), matrix(b_tile(stage) + i * 2048, kBox, 1024),
                   step - piece.begin + i > 0);
        commit();
        wait_for_products<1>();  // those of the step before
        if (step > piece.begin && me == 0) arrive(empty + before);
        before = stage;
      }
      wait_for_products<0>();
      if (me == 0) arrive(empty + before);

      // Which columns, in pieces of 64, this block stores: every `takers`-th.
      int mine = 0, takers = 1;
      if (piece.end - piece.begin < steps) {  // a part
        const int start = (piece.tile - whole) * steps, block = blockIdx.x;
        const int first = schedule.owner_of(start), last = schedule.owner_of(start + steps - 1);
        // A block that has other work to do afterwards, and so ended this early, waits for nobody.
        mine = block - first, takers = last - first + (schedule.start_of(last + 1) == start + steps);
        const auto place = [&](int of) {  // a block has up to two parts: its first piece and its last
          return sums + ((of * 2 + (schedule.start_of(of) < start)) * T::kConsumers + consumer) * (T::kColumns / 8 * 128) + me;
        };
        float4* const to = place(block);
#pragma unroll
        for (int j = 0; j < T::kPieces; ++j)
          if (j % takers != mine)
#pragma unroll
            for (int i = j * 8; i < j * 8 + 8; ++i) __stcg(to + i * 128, make_float4(d[i * 4], d[i * 4 + 1], d[i * 4 + 2], d[i * 4 + 3]));
        unsigned* const counter = counters + (piece.tile - whole) * T::kConsumers + consumer;
        __threadfence();
        meet(group);
        if (me == 0) {
          wait_for_kernel_in_front();
          atomicAdd(counter, 1u);
        }
        if (mine >= takers) continue;
        if (me == 0)
          while (*static_cast<const volatile unsigned*>(counter) < static_cast<unsigned>(last - first + 1)) {
          }
        __threadfence();
        meet(group);
        for (int of = first; of <= last; ++of) {
          if (of == block) continue;
          const float4* const from = place(of);
#pragma unroll
          for (int j = 0; j < T::kPieces; ++j)
            if (j % takers == mine)
#pragma unroll
              for (int i = j * 8; i < j * 8 + 8; ++i) {
                const float4 theirs = __ldcg(from + i * 128);
                d[i * 4] += theirs.x, d[i * 4 + 1] += theirs.y, d[i * 4 + 2] += theirs.z, d[i * 4 + 3] += theirs.w;
              }
        }
      }
#pragma unroll
      for (int j = 0; j < T::kPieces; ++j) {
        if (j % takers != mine) continue;
        uint8_t* const box = boxes + j % T::kOutBoxes * kBox;
        // Its last results have left.
        if (me == 0) {
          if (takers == 1)
            asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(T::kOutBoxes - 1) : "memory");
          else
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        meet(group);
        fill(box, d + j * 32);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        meet(group);
        if (me == 0) store(&map_c, box, column * T::kColumns + j * 64, row * T::kRows + consumer * 64);
      }
    }
    if (me == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

// ---- at most 16 rows ----------------------------------------------------------------------------------------
/// So many times 64 columns of a block.
template <int kWide_>
struct Skinny {
  static constexpr int kWide = kWide_, kM = 16, kThreads = 160;
  static constexpr int kBytesA = kM * 128, kBytes = kWide * kBox + kBytesA;
  static constexpr int kPitch = kWide * 64 + 4;  // floats
  static constexpr int kFit = (kSharedLimit - 1024 - 512) / kBytes, kStages = kFit < 24 ? kFit : 24;
  static constexpr int kSharedBytes = kStages * kBytes + 1024;
};
template <class T>
__global__ void __launch_bounds__(T::kThreads, 1)
    skinny(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, bf16* __restrict__ c, int m, int k, int n,
           int splits) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full[T::kStages], empty[T::kStages];
  uint8_t* const stages = shared + (1024 - address(shared) % 1024) % 1024;
  if (threadIdx.x == 0) {
    for (int i = 0; i < T::kStages; ++i) init(full + i, 1), init(empty + i, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  const int split = blockIdx.x % splits, column = blockIdx.x / splits * T::kWide * 64;
  const int all_steps = (k + kDepth - 1) / kDepth;
  const int begin = static_cast<int>(static_cast<int64_t>(all_steps) * split / splits), end = static_cast<int>(static_cast<int64_t>(all_steps) * (split + 1) / splits);
  int stage = 0, phase = 0;
  const auto advance = [&] { if (++stage == T::kStages) stage = 0, phase ^= 1; };
  float* const partial = reinterpret_cast<float*>(stages);
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128)
      for (int step = begin; step < end; ++step, advance()) {
        wait(empty + stage, phase ^ 1);
        arrive_and_expect(full + stage, T::kBytes);
        uint8_t* const to = stages + stage * T::kBytes;
        for (int j = 0; j < T::kWide; ++j) load(to + j * kBox, &map_b, column + j * 64, step * kDepth, full + stage);
        load(to + T::kWide * kBox, &map_a, step * kDepth, 0, full + stage);
      }
    __syncwarp();
  } else {
    float d[T::kWide][8];
    int before = 0;
#pragma unroll
    for (int j = 0; j < T::kWide; ++j)
#pragma unroll
      for (int i = 0; i < 8; ++i) d[j][i] = 0;
    for (int step = begin; step < end; ++step, advance()) {
      wait(full + stage, phase);
      const uint8_t* const from = stages + stage * T::kBytes;
      begin_multiplying();
#pragma unroll
      for (int j = 0; j < T::kWide; ++j)
#pragma unroll
        for (int i = 0; i < kDepth / 16; ++i)
          multiply(d[j], matrix(from + j * kBox + i * 2048, kBox, 1024), matrix(from + T::kWide * kBox + i * 32, 0, 1024), true);
      commit();
      wait_for_products<1>();
      if (step > begin && threadIdx.x == 0) arrive(empty + before);
      before = stage;
    }
    wait_for_products<0>();
    asm volatile("bar.sync 1, 128;" ::: "memory");
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < T::kWide; ++j)
#pragma unroll
      for (int i = 0; i < 8; ++i)
        partial[(i / 4 * 8 + lane % 4 * 2 + i % 2) * T::kPitch + j * 64 + threadIdx.x / 32 * 16 + i / 2 % 2 * 8 + lane / 4] = d[j][i];
  }
  meet_cluster();
  const int share = T::kWide * 64 / splits;  // columns
  for (int i = threadIdx.x; i < m * (share / 4); i += T::kThreads) {
    const int row = i / (share / 4), at = split * share + i % (share / 4) * 4;
    if (column + at >= n) continue;
    float4 sum = {0, 0, 0, 0};
    for (int from = 0; from < splits; ++from) {
      float4 part;
      asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(part.x), "=f"(part.y), "=f"(part.z), "=f"(part.w)
                   : "r"(address_at(partial + row * T::kPitch + at, from)) : "memory");
      sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    __nv_bfloat162 out[2] = {__floats2bfloat162_rn(sum.x, sum.y), __floats2bfloat162_rn(sum.z, sum.w)};
    *reinterpret_cast<uint2*>(c + static_cast<int64_t>(row) * n + column + at) = *reinterpret_cast<uint2*>(out);
  }
  meet_cluster();
}

/// A matrix as TMA sees it: boxes of 64 columns, which make 128 bytes, and so many rows.
CUtensorMap map_of(const bf16* matrix, int64_t rows, int64_t columns, int box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
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

/// What launch() is given.
struct Arguments {
  const bf16 *a, *b;
  bf16* c;
  int64_t m, k, n;
  int multiprocessors;
  void* workspace;
  cudaStream_t stream;
};
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
void run(const Arguments& x) {
  const int64_t tiles = ceil_div(x.m, T::kAbove * T::kRows) * ceil_div(x.n, T::kAside * T::kColumns);
  const int64_t fit = T::kSplit > 1 ? tiles : x.multiprocessors / T::kCluster;  // parts of k: one tile a cluster
  const int64_t blocks = (tiles < fit ? tiles : fit) * T::kCluster;
  cudaFuncSetAttribute(gemm<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kSharedBytes);
  gemm<T><<<static_cast<unsigned>(blocks), T::kThreads, T::kSharedBytes, x.stream>>>(
      map_of(x.a, x.m, x.k, T::kRows / T::kAside), map_of(x.b, x.k, x.n, kDepth), map_of(x.c, x.m, x.n, 64), static_cast<int>(x.m),
      static_cast<int>(x.k), static_cast<int>(x.n));
}
// ---- equal shares: which tiles are divided, and the memory for it
struct Plan {
  int64_t blocks, whole, divided;  // tiles that are one block's, and the others
};
Plan plan_of(int64_t tiles, int64_t steps, int64_t multiprocessors) {
  const int64_t most = ceil_div(tiles * steps, 4), blocks = most < multiprocessors ? most : multiprocessors;
  // Less than a tile a block would mean more sums than it saves time: so the last two waves, not the last one.
  const int64_t whole = tiles % blocks == 0 ? tiles : tiles > blocks ? (tiles / blocks - 1) * blocks : 0;
  return {blocks, whole, tiles - whole};
}
constexpr int64_t kMostCounters = 4096, kCounterBytes = kMostCounters * 4;
constexpr int64_t kSumBytes = int64_t{128} * 256 * 4 * 2;  // a block's

template <class T>
void run_shares(const Arguments& x) {
  const Plan plan = plan_of(ceil_div(x.m, T::kRows) * ceil_div(x.n, T::kColumns), ceil_div(x.k, kDepth), x.multiprocessors);
  unsigned* const counters = static_cast<unsigned*>(x.workspace);
  float4* const sums = reinterpret_cast<float4*>(static_cast<uint8_t*>(x.workspace) + kCounterBytes);
  if (plan.divided > 0) reset<<<1, 256, 0, x.stream>>>(counters, static_cast<int>(plan.divided) * T::kConsumers);
  cudaFuncSetAttribute(shares<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kSharedBytes);
  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = plan.divided > 0;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(plan.blocks));
  config.blockDim = dim3(T::kThreads);
  config.dynamicSmemBytes = T::kSharedBytes;
  config.stream = x.stream;
  config.attrs = early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, shares<T>, map_of(x.a, x.m, x.k, T::kRows), map_of(x.b, x.k, x.n, kDepth), map_of(x.c, x.m, x.n, 64),
                     static_cast<int>(x.m), static_cast<int>(x.k), static_cast<int>(x.n), static_cast<int>(plan.whole), sums, counters);
}
/// An entry of the table.
struct Entry {
  int64_t rows, columns, above, aside, split, clusters;  // clusters: that run at once; 0: equal shares
  void (*run)(const Arguments&);

  /// [clocks] a guess, fitted to times of all entries at 27 sizes on an H100: what it chooses there is 2.7 % slower
  /// than the best entry. A KB that enters shared memory costs 14 clocks, and 6 more where L2 is read for it; the
  /// tensor cores are faster than that. A wave begins in 1900 and stores four results in one; clusters begin in 1500
  /// more; sums of others take 6400. Memory gives 1690 bytes a clock, at the same time, but not quite. Equal shares
  /// read L2 in less order, and their sums take long.
  int64_t clocks(const Arguments& x) const {
    const int64_t tiles = ceil_div(x.m, rows * above) * ceil_div(x.n, columns * aside), steps = ceil_div(x.k, kDepth);
    const int64_t step = (14 * (rows + columns) + 6 * (rows / aside + columns / above)) * kDepth * 2 / 1024, wave = 1900 + rows * columns / 4;
    const int64_t blocks = plan_of(tiles, steps, x.multiprocessors).blocks;
    const int64_t busy = clusters == 0 ? ceil_div(tiles * steps, blocks) * step * 5 / 4 + ceil_div(tiles, blocks) * wave + 30000
                                       : ceil_div(tiles, clusters) * (ceil_div(steps, split) * step + wave + (split > 1 ? 6400 : 0)) +
                                             (above * aside * split > 1 ? 1500 : 0);
    const int64_t memory = 2 * (x.m * x.k + x.k * x.n + x.m * x.n) / 1690;
    return busy > memory ? busy + memory / 5 : memory + busy / 5;
  }
};
/// A GPU has groups of multiprocessors, and a cluster lies within one: so the driver knows how many fit.
int64_t clusters_at_once(const void* kernel, int blocks, int threads, int shared_bytes, int multiprocessors) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(blocks), cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks)), config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<size_t>(shared_bytes), config.attrs = &cluster, config.numAttrs = 1;
  int clusters = 0;
  if (blocks > 1 && cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess && clusters > 0) return clusters;
  return multiprocessors / blocks > 0 ? multiprocessors / blocks : 1;
}
template <int kRows, int kColumns, int kAbove, int kAside, int kSplit>
Entry entry(int multiprocessors) {
  using T = Tile<kRows, kColumns, kAbove, kAside, kSplit>;
  return {kRows, kColumns, kAbove, kAside, kSplit, 
          clusters_at_once(reinterpret_cast<const void*>(gemm<T>), T::kCluster, T::kThreads, T::kSharedBytes, multiprocessors), run<T>};
}
template <int kRows, int kColumns>
Entry shared_out() {
  return {kRows, kColumns, 1, 1, 1, 0, run_shares<Tile<kRows, kColumns, 1, 1, 1>>};
}
/// Of equal ones the first.
void run_best(const Arguments& x) {
  static const Entry table[] = {
      entry<128, 256, 1, 1, 1>(x.multiprocessors), entry<128, 256, 2, 1, 1>(x.multiprocessors), entry<128, 192, 2, 1, 1>(x.multiprocessors),
      entry<128, 128, 1, 1, 1>(x.multiprocessors), entry<128, 128, 2, 1, 1>(x.multiprocessors), entry<64, 256, 1, 1, 1>(x.multiprocessors),
      entry<64, 128, 1, 1, 1>(x.multiprocessors), entry<64, 128, 2, 1, 1>(x.multiprocessors), entry<128, 64, 1, 1, 1>(x.multiprocessors),
      entry<64, 64, 1, 1, 1>(x.multiprocessors), entry<128, 256, 1, 1, 2>(x.multiprocessors), entry<128, 256, 1, 1, 4>(x.multiprocessors),
      entry<128, 128, 1, 1, 2>(x.multiprocessors), entry<64, 256, 1, 1, 2>(x.multiprocessors), entry<64, 256, 1, 1, 4>(x.multiprocessors),
      entry<64, 128, 1, 1, 2>(x.multiprocessors), entry<128, 192, 1, 1, 1>(x.multiprocessors), shared_out<128, 256>()};
  const Entry* best = table;
  for (const Entry& each : table)
    if (each.clocks(x) < best->clocks(x)) best = &each;
  best->run(x);
}

template <int kWide>
void run_skinny(const Arguments& x, int splits) {
  using T = Skinny<kWide>;
  cudaFuncSetAttribute(skinny<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kSharedBytes);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(splits), cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ceil_div(x.n, kWide * 64) * splits));
  config.blockDim = dim3(T::kThreads);
  config.dynamicSmemBytes = T::kSharedBytes;
  config.stream = x.stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, skinny<T>, map_of(x.a, x.m, x.k, T::kM), map_of(x.b, x.k, x.n, kDepth), x.c, static_cast<int>(x.m),
                     static_cast<int>(x.k), static_cast<int>(x.n), splits);
}
/// Four parts of k and the narrowest blocks of which all run at once; for more columns than that, whole columns. Few
/// wide blocks read memory as fast as many narrow ones, and read A less often.
template <int kWide, int kWider>
void run_best_skinny(const Arguments& x) {
  using T = Skinny<kWide>;
  static const int64_t at_once = clusters_at_once(reinterpret_cast<const void*>(skinny<T>), 4, T::kThreads, T::kSharedBytes, x.multiprocessors);
  if (ceil_div(x.n, kWide * 64) <= at_once) return run_skinny<kWide>(x, 4);
  if (ceil_div(x.n, kWider * 64) <= at_once) return run_skinny<kWider>(x, 4);
  run_skinny<kWide>(x, 1);
}

int multiprocessors_here() {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  return multiprocessors;
}

extern "C" size_t workspace_bytes(int64_t m, int64_t /*k*/, int64_t /*n*/) {
  return m <= 16 ? 0 : static_cast<size_t>(kCounterBytes + multiprocessors_here() * kSumBytes);
}

extern "C" void launch(const bf16* a /*[m,k]*/, const bf16* b /*[k,n]*/, bf16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  const Arguments x{a, b, c, m, k, n, multiprocessors_here(), workspace, stream};
  m <= 16 ? run_best_skinny<4, 8>(x) : run_best(x);
}
