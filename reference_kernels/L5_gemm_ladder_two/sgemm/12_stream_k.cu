// Rung 12: equal shares for all multiprocessors.
//
// Changed     one block a multiprocessor stays for the whole product. All waves of tiles but the last two are
//             dealt out as before; the steps of the tiles that remain are divided evenly, wherever a tile ends.
//             A block that has only a part of a tile's k writes its sums to the workspace; the last one to do
//             so adds the others' and stores the tile.
// Why         4096 x 4096 has 512 tiles for 132 multiprocessors: 3.88 waves, so an eighth of the chip has
//             nothing to do in the fourth.
// Prediction  1.03x rung 11: 4 / 3.88, less the way of about 34 MB of sums to L2 and back.
//
// Shapes      a [m, k], b [k, n], c [m, n], row-major; any sizes.
// Launch      one block per multiprocessor, or one per four steps if there are fewer; 384 threads: eight warps
//             multiply, one thread of four more fetches.
// Resources   232 registers of those that multiply, 128 of them sums; 209 KB of shared memory. Workspace: two
//             tiles of sums a block, and a counter for each tile that may be divided.
// Cost        2 * m * n * k FLOPs; 4 * m * n * k * (1 / 128 + 1 / 256) bytes of loads, and the sums of divided
//             tiles.
// Divides     nothing has to; k % 4 == 0 lets the copy engine fetch A, n % 4 == 0 B.
// Source      stream-k: M. Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
//             Multiplication on the GPU", 2023. Needs sm_90a.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

constexpr int kTileM = 128, kTileN = 256, kDepth = 32, kStages = 4;
constexpr int kWarps = 8, kThreads = (kWarps + 4) * 32;  // that multiply; with those that fetch
constexpr int kBytesA = kTileM * kDepth * 4, kBytesB = kTileN * kDepth * 4, kBytesBox = 8 * 64 * 4;
constexpr int kSharedBytes = kStages * (kBytesA + kBytesB) + kWarps * kBytesBox + 1024;
constexpr int kFetchRegisters = 32, kSumRegisters = 232;
constexpr int kBand = 8;  // tile rows

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// A barrier in shared memory: a phase ends with the last of its arrivals, when the bytes that it was told to
// expect have arrived, too.
__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}
__device__ void expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(bytes) : "memory");
}
__device__ void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
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
/// The threads that multiply meet.
__device__ void meet() { asm volatile("bar.sync 1, %0;" ::"n"(kWarps * 32) : "memory"); }

/// One float to shared memory, asynchronously; a zero where it does not exist.
__device__ void copy(uint32_t to, const float* from, bool exists, const float* any_valid_address) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(exists ? from : any_valid_address),
               "r"(exists ? 4 : 0) : "memory");
}
/// The barrier counts this thread when its copies so far have come.
__device__ void arrive_after_copies(uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address(barrier)) : "memory");
}

/// Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may be
/// lower.
__device__ void place_of(int tile, int rows, int columns, int& row, int& column) {
  const int band = tile / (kBand * columns), within = tile % (kBand * columns);
  const int height = rows - band * kBand < kBand ? rows - band * kBand : kBand;
  row = band * kBand + within % height, column = within / height;
}

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

__device__ float part(const float4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// Four warps copy what the copy engine cannot fetch, into the places where it would put it. kWhole: all of the
// tile lies inside, so nothing is checked. The first row of `a` and `b` is that of the tile.
/// A warp a row. 16-byte piece p of row r lies at p ^ r % 8.
template <bool kWhole>
__device__ void fetch_a(uint8_t* to, const float* a, int rows_left, int depth_left, int k) {
  const int warp = threadIdx.x / 32 - kWarps, lane = threadIdx.x % 32;
  const uint32_t even = address(to) + warp * 128 + (lane / 4 ^ warp) * 16 + lane % 4 * 4;
  const uint32_t odd = address(to) + (warp + 4) * 128 + (lane / 4 ^ (warp + 4)) * 16 + lane % 4 * 4;
  const float* from = a + static_cast<int64_t>(warp) * k + lane;
#pragma unroll 8
  for (int i = 0; i < kTileM; i += 8) {
    copy(even + i * 128, from, kWhole || (i + warp < rows_left && lane < depth_left), a);
    from += 4 * static_cast<int64_t>(k);
    copy(odd + i * 128, from, kWhole || (i + 4 + warp < rows_left && lane < depth_left), a);
    from += 4 * static_cast<int64_t>(k);
  }
}
/// All four warps half a row.
template <bool kWhole>
__device__ void fetch_b(uint8_t* to, const float* b, int columns_left, int depth_left, int n) {
  const int me = threadIdx.x - kWarps * 32;
  const uint32_t there = address(to) + me * 4;
  const float* from = b + me;
#pragma unroll 8
  for (int i = 0; i < kDepth; ++i, from += n) {
    copy(there + i * (kTileN * 4), from, kWhole || (i < depth_left && me < columns_left), b);
    copy(there + i * (kTileN * 4) + 512, from + 128, kWhole || (i < depth_left && me + 128 < columns_left), b);
  }
}

/// kEngineA, kEngineB: rows start on 16 bytes, so the copy engine can fetch boxes of the matrix.
template <bool kEngineA, bool kEngineB>
__global__ void __launch_bounds__(kThreads, 1)
    sgemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const float* __restrict__ a,
          const float* __restrict__ b, float* __restrict__ c, int m, int k, int n, int whole, float* partial_sums, unsigned* arrivals) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full[kStages], empty[kStages];
  __shared__ unsigned arrived;
  uint8_t* const stages = shared + (1024 - address(shared) % 1024) % 1024;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(full + i, kEngineA && kEngineB ? 1 : 128), init(empty + i, kWarps);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
  }
  __syncthreads();

  const int rows = (m + kTileM - 1) / kTileM, columns = (n + kTileN - 1) / kTileN, steps = (k + kDepth - 1) / kDepth;
  Schedule schedule(rows * columns, steps, whole);
  Piece piece;
  int stage = 0, phase = 0;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= kWarps) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kFetchRegisters));
    const int me = threadIdx.x - kWarps * 32;
    if (kEngineA && kEngineB && me > 0) return;
    while (schedule.next(piece)) {
      int row0, column0;
      place_of(piece.tile, rows, columns, row0, column0);
      row0 *= kTileM, column0 *= kTileN;
      for (int step = piece.begin; step < piece.end; ++step) {
        const int depth = step * kDepth;
        wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
        uint8_t* const to = stages + stage * (kBytesA + kBytesB);
        if constexpr (kEngineA || kEngineB)
          if (me == 0) {
            expect(full + stage, (kEngineA ? kBytesA : 0) + (kEngineB ? kBytesB : 0));
            if constexpr (kEngineA) load(to, &a_map, depth, row0, full + stage);
            if constexpr (kEngineB) load(to + kBytesA, &b_map, column0, depth, full + stage);
          }
        const bool deep = depth + kDepth <= k;
        if constexpr (!kEngineA) {
          const float* const from = a + static_cast<int64_t>(row0) * k + depth;
          if (deep && row0 + kTileM <= m) fetch_a<true>(to, from, 0, 0, k); else fetch_a<false>(to, from, m - row0, k - depth, k);
        }
        if constexpr (!kEngineB) {
          const float* const from = b + static_cast<int64_t>(depth) * n + column0;
          if (deep && column0 + kTileN <= n)
            fetch_b<true>(to + kBytesA, from, 0, 0, n);
          else
            fetch_b<false>(to + kBytesA, from, n - column0, k - depth, n);
        }
        if constexpr (kEngineA && kEngineB) arrive(full + stage); else arrive_after_copies(full + stage);
        if (++stage == kStages) stage = 0, phase ^= 1;
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kSumRegisters));
    const int warp_m = warp / 4, warp_n = warp % 4, lane_m = lane / 4, lane_n = lane % 4;
    const uint8_t* const a_start = stages + (warp_m * 64 + lane_m) * 128;
    const uint8_t* const b_start = stages + kBytesA + (warp_n * 64 + lane_n * 4) * 4;
    // Four k of eight rows, eight rows apart; and of one k, or the next one, four times four columns.
    float4 a_values[8], b_values[2][4];
    const auto a_at = [&](int which, int group) { return a_start + which * (kBytesA + kBytesB) + (group ^ lane_m) * 16; };
    const auto b_at = [&](int which, int group) { return b_start + which * (kBytesA + kBytesB) + group * (4 * kTileN * 4); };
    const auto load_a = [&](int i, const uint8_t* from) { a_values[i] = *reinterpret_cast<const float4*>(from + i * 1024); };
    const auto load_b = [&](int slot, const uint8_t* from) {
#pragma unroll
      for (int q = 0; q < 4; ++q) b_values[slot][q] = *reinterpret_cast<const float4*>(from + q * 64);
    };
    bool more = schedule.next(piece);
    if (more) {
      wait(full, 0);
      load_b(0, b_at(0, 0));
#pragma unroll
      for (int i = 0; i < 8; ++i) load_a(i, a_at(0, 0));
    }
    while (more) {
      const Piece now = piece;
      more = schedule.next(piece);
      float sum[8][16] = {};
      const auto multiply = [&](int kk, int i) {  // two rows
#pragma unroll
        for (int j = 0; j < 16; j += 2)
#pragma unroll
          for (int corner = 0; corner < 4; ++corner) {  // of a square, around it: each shares a factor with the one before
            const int row = i + corner / 2, column = j + (corner / 2 ^ corner % 2);
            sum[row][column] += part(a_values[row], kk) * part(b_values[kk % 2][column / 4], column % 4);
          }
      };
      for (int step = now.begin; step < now.end; ++step) {
        const int groups = step + 1 < steps ? kDepth / 4 : (k - 1) % kDepth / 4 + 1;  // of four k
#pragma unroll 1
        for (int group = 0; group < groups - 1; ++group)
#pragma unroll
          for (int kk = 0; kk < 4; ++kk) {
            load_b((kk + 1) % 2, b_at(stage, group) + (kk + 1) * (kTileN * 4));
#pragma unroll
            for (int i = 0; i < 8; i += 2) {
              multiply(kk, i);
              if (kk == 3) load_a(i, a_at(stage, group + 1)), load_a(i + 1, a_at(stage, group + 1));
            }
          }
        const int next = stage + 1 < kStages ? stage + 1 : 0;
        const bool last = step + 1 == now.end && !more;
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) {  // the last group, during which the next tile's first values come
          if (kk < 3) {
            load_b((kk + 1) % 2, b_at(stage, groups - 1) + (kk + 1) * (kTileN * 4));
          } else if (!last) {
            wait(full + next, next == 0 ? phase ^ 1 : phase);
            load_b(0, b_at(next, 0));
          }
#pragma unroll
          for (int i = 0; i < 8; i += 2) {
            multiply(kk, i);
            if (kk == 3 && !last) load_a(i, a_at(next, 0)), load_a(i + 1, a_at(next, 0));
          }
        }
        __syncwarp();
        if (lane == 0) arrive(empty + stage);
        if (next == 0) phase ^= 1;
        stage = next;
      }

      if (now.end - now.begin < steps) {  // a part
        const int start = (now.tile - whole) * steps;
        const int first = schedule.owner_of(start), last = schedule.owner_of(start + steps - 1);
        const auto place = [&](int block) {  // a block has up to two parts: its first piece and its last
          return partial_sums + (block * 2 + (schedule.start_of(block) < start)) * (kTileM * kTileN) + threadIdx.x;
        };
#pragma unroll
        for (int i = 0; i < 128; ++i) place(blockIdx.x)[i * (kWarps * 32)] = sum[i / 16][i % 16];
        __threadfence();
        meet();
        if (threadIdx.x == 0) arrived = atomicAdd(arrivals + now.tile - whole, 1u);
        meet();
        if (static_cast<int>(arrived) < last - first) continue;
        __threadfence();
        // Always in the same order: of two parts either is the first, of more this block's own is read again.
        const bool two = last - first == 1;
#pragma unroll
        for (int i = 0; i < 128; ++i) sum[i / 16][i % 16] = two ? sum[i / 16][i % 16] : 0;
        for (int block = first; block <= last; ++block)
          if (!two || block != static_cast<int>(blockIdx.x))
#pragma unroll
            for (int i = 0; i < 128; ++i) sum[i / 16][i % 16] += __ldcg(place(block) + i * (kWarps * 32));
      }

      // Through shared memory, so that a warp stores 32 columns that lie side by side. Columns change places in
      // pairs: see rung 11.
      int row0, column0;
      place_of(now.tile, rows, columns, row0, column0);
      row0 = row0 * kTileM + warp_m * 64, column0 = column0 * kTileN + warp_n * 64;
      float* const box = reinterpret_cast<float*>(stages + kStages * (kBytesA + kBytesB) + warp * kBytesBox);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        __syncwarp();
#pragma unroll
        for (int q = 0; q < 4; ++q)
          *reinterpret_cast<float4*>(box + lane_m * 64 + ((q * 4 + lane_n) ^ lane_m) * 4) =
              make_float4(sum[i][q * 4 + 1], sum[i][q * 4], sum[i][q * 4 + 3], sum[i][q * 4 + 2]);
        __syncwarp();
#pragma unroll 4
        for (int r = 0; r < 8; ++r) {
          const int row = row0 + i * 8 + r;
#pragma unroll
          for (int column = lane; column < 64; column += 32)
            if (row < m && column0 + column < n)
              c[static_cast<int64_t>(row) * n + column0 + column] = box[r * 64 + (column / 4 ^ r) * 4 + (column % 4 ^ 1)];
        }
      }
    }
  }
}

/// A matrix as TMA sees it. One whose rows do not start on 16 bytes it does not take: then the result is not used.
CUtensorMap map_of(const float* matrix, int64_t rows, int64_t columns, int box_rows, int box_columns, CUtensorMapSwizzle swizzle) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * 4};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)}, step[] = {1, 1};
  CUtensorMap map{};
  if (columns % 4 == 0 && encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(matrix), size, pitch, box, step,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the matrix");
  return map;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Plan {
  int64_t blocks, whole, divided;  // tiles that are one block's, and the others
};
Plan plan_of(int64_t m, int64_t k, int64_t n) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int64_t tiles = ceil_div(m, kTileM) * ceil_div(n, kTileN), shares = ceil_div(tiles * ceil_div(k, kDepth), 4);
  const int64_t blocks = shares < multiprocessors ? shares : multiprocessors;
  // Less than a tile a block would cost more sums than it saves time: so the last two waves, not the last one.
  const int64_t whole = tiles % blocks == 0 ? tiles : tiles > blocks ? (tiles / blocks - 1) * blocks : 0;
  return {blocks, whole, tiles - whole};
}

extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t n) {
  const Plan plan = plan_of(m, k, n);
  return plan.divided == 0 ? 0 : static_cast<size_t>(plan.blocks * 2 * kTileM * kTileN + plan.divided) * 4;
}

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* workspace, cudaStream_t stream) {
  const Plan plan = plan_of(m, k, n);
  float* const partial_sums = static_cast<float*>(workspace);
  unsigned* const arrivals = plan.divided == 0 ? nullptr : reinterpret_cast<unsigned*>(partial_sums + plan.blocks * 2 * kTileM * kTileN);
  if (plan.divided > 0) cudaMemsetAsync(arrivals, 0, static_cast<size_t>(plan.divided) * 4, stream);
  const bool engine_a = k % 4 == 0, engine_b = n % 4 == 0;
  const auto kernel = engine_a ? (engine_b ? sgemm<true, true> : sgemm<true, false>) : (engine_b ? sgemm<false, true> : sgemm<false, false>);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  kernel<<<static_cast<unsigned>(plan.blocks), kThreads, kSharedBytes, stream>>>(
      map_of(a, m, k, kTileM, kDepth, CU_TENSOR_MAP_SWIZZLE_128B), map_of(b, k, n, kDepth, kTileN, CU_TENSOR_MAP_SWIZZLE_NONE), a, b, c,
      static_cast<int>(m), static_cast<int>(k), static_cast<int>(n), static_cast<int>(plan.whole), partial_sums, arrivals);
}
