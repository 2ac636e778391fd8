// Rung 10: k is split over a cluster.
//
// Changed     two or four blocks of a cluster compute the same tile, each over its part of k. Then each of
//             them adds up a share of the columns: the others store their sums into its shared memory. The
//             table has entries of this kind, and the host prices them as it prices the rest.
// Why         1024 x 1024 x 16384 has 32 tiles of 128 x 256 for 132 multiprocessors. Smaller tiles would fill
//             the chip, but they load more bytes for each product, and loads are what such a tile waits for.
// Prediction  1.15x to 1.3x of rung 9 there; nothing where tiles fill the chip.
// Came        1.36 ms on an H100, 810.53 TFLOP/s, 1.00 times the rung before. 98 % of the native baseline.
//
// Shapes      a [m, k], b [k, n], c [m, n], bf16, row-major.
// Launch      as rung 9; with k split one block per tile and part of k, in clusters of two or four.
// Resources   as rung 9. The sums that arrive take the place of the stages, which are empty by then.
// Cost        2 m n k FLOPs; loads as rung 9; (parts - 1) m n floats between shared memories.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so); m anything, and a part of k may be empty.
// Source      split-k with sums in distributed shared memory; CUTLASS splits through global memory. Needs
//             sm_90a.
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

// The registers of 64 x 64, 64 x 128 … results, as text and as operands.
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
/// An entry of the table.
struct Entry {
  int64_t rows, columns, above, aside, split, clusters;  // clusters: that run at once
  void (*run)(const Arguments&);

  /// [clocks] a guess, good enough to compare entries; its numbers come from measured times. Tensor cores do
  /// 2048 products a clock. A KB that enters shared memory costs 10 clocks, and 8 more where L2 is read for it;
  /// a wave begins and ends in 2000, clusters in 1500 more, sums of others in 6000.
  int64_t clocks(const Arguments& x) const {
    const int64_t tiles = ceil_div(x.m, rows * above) * ceil_div(x.n, columns * aside), waves = ceil_div(tiles, clusters);
    const int64_t multiply = rows * columns / 32;  // a step
    const int64_t load = (10 * (rows + columns) + 8 * (rows / aside + columns / above)) * kDepth * 2 / 1024;
    return waves * (ceil_div(ceil_div(x.k, kDepth), split) * (multiply > load ? multiply : load) + 2000 + (split > 1 ? 6000 : 0)) +
           (above * aside * split > 1 ? 1500 : 0);
  }
};
/// A GPU has groups of multiprocessors, and a cluster lies within one: so the driver knows how many fit.
template <class T>
int64_t clusters_at_once(int multiprocessors) {
  cudaFuncSetAttribute(gemm<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kSharedBytes);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = T::kCluster, cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(T::kCluster)), config.blockDim = dim3(T::kThreads);
  config.dynamicSmemBytes = T::kSharedBytes, config.attrs = &cluster, config.numAttrs = 1;
  int clusters = 0;
  if (T::kCluster > 1 && cudaOccupancyMaxActiveClusters(&clusters, gemm<T>, &config) == cudaSuccess && clusters > 0) return clusters;
  return multiprocessors / T::kCluster > 0 ? multiprocessors / T::kCluster : 1;
}
template <int kRows, int kColumns, int kAbove, int kAside, int kSplit>
Entry entry(int multiprocessors) {
  using T = Tile<kRows, kColumns, kAbove, kAside, kSplit>;
  return {kRows, kColumns, kAbove, kAside, kSplit, clusters_at_once<T>(multiprocessors), run<T>};
}
/// Of equal ones the first.
void run_best(const Arguments& x) {
  static const Entry table[] = {
      entry<128, 256, 1, 1, 1>(x.multiprocessors), entry<128, 256, 2, 1, 1>(x.multiprocessors), entry<128, 192, 2, 1, 1>(x.multiprocessors),
      entry<128, 128, 1, 1, 1>(x.multiprocessors), entry<128, 128, 2, 1, 1>(x.multiprocessors), entry<64, 256, 1, 1, 1>(x.multiprocessors),
      entry<64, 128, 1, 1, 1>(x.multiprocessors), entry<64, 128, 2, 1, 1>(x.multiprocessors), entry<128, 64, 1, 1, 1>(x.multiprocessors),
      entry<64, 64, 1, 1, 1>(x.multiprocessors), entry<128, 256, 1, 1, 2>(x.multiprocessors), entry<128, 256, 1, 1, 4>(x.multiprocessors),
      entry<128, 128, 1, 1, 2>(x.multiprocessors)};
  const Entry* best = table;
  for (const Entry& each : table)
    if (each.clocks(x) < best->clocks(x)) best = &each;
  best->run(x);
}

extern "C" void launch(const bf16* a /*[m,k]*/, const bf16* b /*[k,n]*/, bf16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n,
                       void* /*workspace*/, cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  run_best({a, b, c, m, k, n, multiprocessors, stream});
}
