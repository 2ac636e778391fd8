// Rung 3: WGMMA and TMA. Products as in gemm_swiglu's last rung, attention as in causal_attention's.
//
// Changed     one persistent kernel for the four products: clusters of two blocks share a tile of 256
//             rows of w, a warp group fetches, two multiply 64 x 256 x 16. Its end is a template: rotate;
//             add the residual and prepare the next norm; gate; add. The norm in front of a product has
//             to leave the tensor cores' operand in memory: the gain is multiplied in by who writes it,
//             the scale by who has multiplied. Attention: the next scores start before this softmax,
//             tiles drawn from a counter, the longest first.
// Why         mma.sync reaches half of what Hopper's tensor cores can do, and 93 % of the FLOPs are
//             products.
// Prediction  780 TFLOP/s for the products, 2.3 ms; attention at 500, 0.27 ms: 2.6 ms, 740 TFLOP/s.
// Came        2.62 ms on an H100, 734.52 TFLOP/s, 1.97 times the rung before. 128 % of the native baseline.
//
// Shapes      x, y [t, hidden], hidden = 128 hq; weights [outputs, inputs]; k, v [t, hk, 128]; bf16.
// Launch      one block of 384 threads per multiprocessor, products in clusters of two; tiles of 128 x
//             256, or 128 queries of a head.
// Resources   232 or 240 registers per consumer, 24 to 40 a producer; up to 227 KB of shared memory;
//             workspace: 2 t (4 hidden + f) bytes, 516 t and 4 t for each 256 columns.
// Cost        2 t hidden (2 hidden + 256 hk + 3 f) + 256 hq t (t + 1) FLOPs.
// Divides     f % 8 == 0, hq % hk == 0 (the problem says so); t anything.
// Source      gemm_swiglu's rung 3; FlashAttention-3, J. Shah et al. (2024). Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

using bf16 = __nv_bfloat16;

constexpr int kDim = 128;  // of a head
constexpr int kTileM = 128, kTileN = 256, kDepth = 64, kStages = 4, kConsumers = 2;
constexpr int kThreads = 128 * (1 + kConsumers);
constexpr int kCluster = 2, kBand = 8;  // blocks, and pairs of tile rows
constexpr int kOutBoxes = 2;            // a warp's, on their way out
constexpr int kBox = 64 * 64 * sizeof(bf16), kBytesA = kTileM / 64 * kBox,
              kBytesB = kTileN / 64 * kBox;  // [B]
constexpr int kOutBox = 16 * 64 * sizeof(bf16);
constexpr int kSharedBytes = kStages * (kBytesA + kBytesB) + 4 * kConsumers * kOutBoxes * kOutBox + 1024;

// ---- numbers ----------------------------------------------------------------------------------------------
/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(uint32_t word) { return __uint_as_float(word << 16); }
__device__ float high(uint32_t word) { return __uint_as_float(word & 0xffff0000u); }
__device__ uint32_t pack(float x, float y) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
  return reinterpret_cast<const uint32_t&>(both);
}
__device__ uint32_t word_at(const bf16* from) { return *reinterpret_cast<const uint32_t*>(from); }
/// Cosine and sine of each position and pair. The angle is a double: a float of 4096 radians has lost 11
/// bits.
__global__ void make_table(float2* table, float theta) {
  const double angle = blockIdx.x * exp2(threadIdx.x * (-2.0 / kDim) * log2(static_cast<double>(theta)));
  const double turns = angle / (2 * M_PI);
  float2 to;
  sincosf(static_cast<float>((turns - rint(turns)) * (2 * M_PI)), &to.y, &to.x);
  table[blockIdx.x * (kDim / 2) + threadIdx.x] = to;
}

/// x times the gain, and the sum of each row's squares: the product that follows multiplies with the row's
/// scale.
constexpr int kSmallThreads = 256;
__global__ void __launch_bounds__(kSmallThreads)
    prepare(const bf16* __restrict__ x, const bf16* __restrict__ gain, bf16* __restrict__ to,
            float* __restrict__ squares, int hidden) {
  __shared__ float partial[kSmallThreads / 32];
  x += static_cast<int64_t>(blockIdx.x) * hidden, to += static_cast<int64_t>(blockIdx.x) * hidden;
  float sum = 0;
  for (int i = 8 * threadIdx.x; i < hidden; i += 8 * kSmallThreads) {
    const uint4 v = *reinterpret_cast<const uint4*>(x + i), g = *reinterpret_cast<const uint4*>(gain + i);
    const uint32_t words[4] = {v.x, v.y, v.z, v.w}, factors[4] = {g.x, g.y, g.z, g.w};
    uint32_t result[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sum += low(words[j]) * low(words[j]) + high(words[j]) * high(words[j]);
      result[j] = pack(low(words[j]) * low(factors[j]), high(words[j]) * high(factors[j]));
    }
    *reinterpret_cast<uint4*>(to + i) = make_uint4(result[0], result[1], result[2], result[3]);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int warp = 1; warp < kSmallThreads / 32; ++warp) sum += partial[warp];
  squares[blockIdx.x] = sum;
}

// ---- barriers and copies ----------------------------------------------------------------------------------
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
/// At the same barrier of block `rank` of the cluster.
__device__ void arrive_at(uint64_t* barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(address(barrier)),
      "r"(rank)
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

/// The copy engine fetches the box of `map` at (column, row), fills with zeros what lies outside, and signals
/// the barrier.
__device__ void load(void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row)
      : "memory");
}
/// The same for both blocks of the cluster at once: each gets it at the same place, and its own barrier is
/// signalled.
__device__ void load_for_both(void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row), "h"(static_cast<uint16_t>(3))
      : "memory");
}
/// In the other direction; what lies outside of the matrix is not stored.
__device__ void store(const CUtensorMap* map, uint32_t from, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(from), "r"(column), "r"(row)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
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

/// Where a matrix lies, for wgmma: rows of 128 bytes, swizzled as TMA writes them; `leading` and `stride` [B]
/// say where the next 64 columns and the next eight rows begin.
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

// ---- products ---------------------------------------------------------------------------------------------
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
      "%128, %129, p, 1, 1, 0, 0;\n"
      "}"
      : D16(0), D16(16), D16(32), D16(48), D16(64), D16(80), D16(96), D16(112)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

/// Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may be
/// lower.
__device__ void place_of(int tile, int rows, int columns, int& row, int& column) {
  const int band = tile / (kBand * columns), within = tile % (kBand * columns);
  const int height = rows - band * kBand < kBand ? rows - band * kBand : kBand;
  row = band * kBand + within % height, column = within / height;
}

/// Where the exponential is infinite, its reciprocal is zero.
__device__ float gated(float gate, float up) {
  float power, sigmoid;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(gate * -1.44269504f));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(sigmoid) : "f"(1 + power));
  return gate * up * sigmoid;
}

/// Four matrices of 8 x 8 results, one register each, into a box of 16 x 64: rows 0 to 7 and 8 to 15 of
/// 16-byte piece `piece`, and of the next one. Piece p of row r lies at p ^ (r % 8), as TMA expects it.
/// `place` is where the row of a lane has its piece 0: see place_in().
__device__ void write(uint32_t place, int piece, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(place ^ piece * 16),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
/// A lane names the row lane % 16 of a box, and of two neighbouring pieces that of its half of the warp.
__device__ uint32_t place_in(uint32_t box) {
  const int lane = threadIdx.x % 32;
  return box + lane % 16 * 128 + (lane % 8 ^ lane / 16) * 16;
}

/// All threads of both blocks meet.
__device__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/// What happens to the sums of a tile.
enum class End { kHeads, kResidualAndNorm, kGated, kResidual };
struct Operands {
  const float2* table;  // kHeads: of the rotation
  int hq, hk;
  const float* squares;  // kHeads, kGated: [parts, m], sums of squares of the rows of a
  int parts, norm;       // elements of a row
  float eps;
  const bf16 *x, *gain;  // kResidual…: what is added; kResidualAndNorm: the gain of the norm that follows
  float* squares_to;     // kResidualAndNorm: [columns of tiles, m]
};

/// epilogue(a w^T): a [m, k], w [n, k]. Two blocks of a cluster are above each other and share the tile of w.
/// Its two halves are 128 rows each, neighbours or (kGated) gates and ups.
template <End kEnd>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    product(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_w,
            const __grid_constant__ CUtensorMap map_to, const __grid_constant__ CUtensorMap map_k,
            const __grid_constant__ CUtensorMap map_v, const Operands given, int m, int k, int n) {
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full[kStages], empty[kStages];
  constexpr int kColumns = kEnd == End::kGated ? kTileN / 2 : kTileN;  // of the result
  uint8_t* const stages = shared + (1024 - address(shared) % 1024) % 1024;
  const auto a_tile = [&](int stage) { return stages + stage * (kBytesA + kBytesB); };  // 64 rows after 64
  const auto w_tile = [&](int stage) { return a_tile(stage) + kBytesA; };               // 64 rows after 64
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(full + i, 1), init(empty + i, kConsumers * kCluster);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");        // the copy engine sees them, too
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // and so does the other block
  }
  meet_cluster();

  const int rank = blockIdx.x % kCluster;  // in the cluster
  const int rows = (m + kCluster * kTileM - 1) / (kCluster * kTileM);
  const int columns = (n + kColumns - 1) / kColumns;  // tiles of the cluster
  int stage = 0, phase = 0;
  const auto advance = [&] {
    if (++stage == kStages) stage = 0, phase ^= 1;
  };
  const int group = threadIdx.x / 128;
  if (group == 0) {  // the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (int tile = blockIdx.x / kCluster; tile < rows * columns; tile += gridDim.x / kCluster) {
        int row, column;
        place_of(tile, rows, columns, row, column);
        const int row_of_w =
            kEnd == End::kGated ? rank * n + column * kColumns : column * kColumns + rank * kTileN / 2;
        for (int depth = 0; depth < k; depth += kDepth, advance()) {
          wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
          arrive_and_expect(full + stage, kBytesA + kBytesB);
          load(a_tile(stage), &map_a, depth, (row * kCluster + rank) * kTileM, full + stage);
          load_for_both(w_tile(stage) + rank * kBytesB / 2, &map_w, depth, row_of_w, full + stage);
        }
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int consumer = group - 1, me = threadIdx.x % 128;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4;  // of the consumers
    const uint32_t boxes = address(stages + kStages * (kBytesA + kBytesB)) + warp * kOutBoxes * kOutBox;
    int box_at = 0;
    float d[128];
    for (int tile = blockIdx.x / kCluster; tile < rows * columns; tile += gridDim.x / kCluster) {
      int row, column, before = 0;  // before: the stage of the last step
      place_of(tile, rows, columns, row, column);
      for (int depth = 0; depth < k; depth += kDepth, advance()) {
        wait(full + stage, phase);
        begin_multiplying();
#pragma unroll
        for (int i = 0; i < kDepth / 16; ++i)  // 16 of k are 32 bytes of the rows of both
          multiply(d, matrix(a_tile(stage) + consumer * kBox + i * 32, 0, 1024),
                   matrix(w_tile(stage) + i * 32, 0, 1024), depth + i > 0);
        commit();
        wait_for_products<1>();  // those of the step before
        if (depth > 0 && me < kCluster)
          arrive_at(empty + before, me);  // for four warps: their products are one
        before = stage;
      }
      wait_for_products<0>();
      if (me < kCluster) arrive_at(empty + before, me);

      const int first = (row * kCluster + rank) * kTileM + warp * 16,
                mine = first + lane / 4;  // and the row 8 below
      /// 64 columns to their place: result(at) is what at and at + 1 become, as a word.
      const auto send = [&](const CUtensorMap* map, int to, auto result) {
        const uint32_t box = boxes + box_at * kOutBox, place = place_in(box);
        box_at ^= 1;
        if (lane == 0)
          asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kOutBoxes - 1)
                       : "memory");  // its last results have left
        __syncwarp();
#pragma unroll
        for (int piece = 0; piece < 8; piece += 2)
          write(place, piece, result(piece * 4), result(piece * 4 + 2), result(piece * 4 + 4),
                result(piece * 4 + 6));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine sees them, too
        __syncwarp();
        if (lane == 0) store(map, box, to, first);
      };
      float scale[2] = {1, 1};
      if constexpr (kEnd == End::kHeads || kEnd == End::kGated) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float sum = 0;
          for (int part = 0; part < given.parts && mine + half * 8 < m; ++part)
            sum += given.squares[static_cast<int64_t>(part) * m + mine + half * 8];
          scale[half] = rsqrtf(sum / static_cast<float>(given.norm) + given.eps);
        }
      }
      if constexpr (kEnd == End::kHeads) {
#pragma unroll
        for (int side = 0; side < 2; ++side) {  // a head each
          const int head = column * 2 + side;
          float* const own = d + side * 64;
          if (head >= given.hq + 2 * given.hk) continue;
          if (head < given.hq + given.hk) {
#pragma unroll
            for (int j = 0; j < 8; ++j)
#pragma unroll
              for (int half = 0; half < 2; ++half) {
                const int token = mine + half * 8 < m ? mine + half * 8 : 0, at = j * 4 + half * 2;
                const float4 turn = *reinterpret_cast<const float4*>(
                    given.table + static_cast<int64_t>(token) * (kDim / 2) + j * 8 + lane % 4 * 2);
                const float a0 = own[at], a1 = own[at + 1], b0 = own[at + 32], b1 = own[at + 33];
                own[at] = a0 * turn.x - b0 * turn.y, own[at + 1] = a1 * turn.z - b1 * turn.w;
                own[at + 32] = b0 * turn.x + a0 * turn.y, own[at + 33] = b1 * turn.z + a1 * turn.w;
              }
          }
          const CUtensorMap* const map = head < given.hq              ? &map_to
                                         : head < given.hq + given.hk ? &map_k
                                                                      : &map_v;
          const int to = (head < given.hq              ? head
                          : head < given.hq + given.hk ? head - given.hq
                                                       : head - given.hq - given.hk) *
                         kDim;
#pragma unroll
          for (int j = 0; j < 2; ++j)
            send(map, to + j * 64, [&](int at) {
              return pack(own[j * 32 + at] * scale[at / 2 % 2], own[j * 32 + at + 1] * scale[at / 2 % 2]);
            });
        }
      } else if constexpr (kEnd == End::kGated) {
#pragma unroll
        for (int j = 0; j < 2; ++j)
          send(&map_to, column * kColumns + j * 64, [&](int at) {
            const float *const gate = d + j * 32 + at, *const up = gate + 64, factor = scale[at / 2 % 2];
            return pack(gated(gate[0] * factor, up[0] * factor), gated(gate[1] * factor, up[1] * factor));
          });
      } else {
        float square[2] = {};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int at_column = column * kColumns + j * 64;
          if (at_column >= n) break;
          uint32_t result[16];  // of pieces and halves of rows
#pragma unroll
          for (int i = 0; i < 16; ++i) {
            const int token = mine + i % 2 * 8;
            const int64_t from = static_cast<int64_t>(token) * n + at_column + i / 2 * 8 + lane % 4 * 2;
            const uint32_t added = token < m ? *reinterpret_cast<const uint32_t*>(given.x + from) : 0;
            result[i] = pack(d[j * 32 + i * 2] + low(added), d[j * 32 + i * 2 + 1] + high(added));
            if (kEnd == End::kResidualAndNorm)
              square[i % 2] += low(result[i]) * low(result[i]) + high(result[i]) * high(result[i]);
          }
          send(&map_to, at_column, [&](int at) { return result[at / 2]; });
          if constexpr (kEnd == End::kResidualAndNorm)
            send(&map_k, at_column, [&](int at) {
              const uint32_t gain =
                  *reinterpret_cast<const uint32_t*>(given.gain + at_column + at / 4 * 8 + lane % 4 * 2);
              return pack(low(result[at / 2]) * low(gain), high(result[at / 2]) * high(gain));
            });
        }
        if constexpr (kEnd == End::kResidualAndNorm)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            square[half] += __shfl_xor_sync(0xffffffffu, square[half], 1);
            square[half] += __shfl_xor_sync(0xffffffffu, square[half], 2);
            if (lane % 4 == 0 && mine + half * 8 < m)
              given.squares_to[static_cast<int64_t>(column) * m + mine + half * 8] = square[half];
          }
      }
    }
    // No thread leaves before its results have.
    if (lane == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  meet_cluster();  // no block leaves while the other may still write to it, or arrive at its barriers
}

// ---- attention --------------------------------------------------------------------------------------------
/// Two consumers of 64 queries, tiles of 128 keys, two slots for keys and values and for queries.
struct P {
  static constexpr int kConsumers = 2, kQueries = 64 * kConsumers, kKeys = 128, kStages = 2, kStagesQ = 2;
  static constexpr int kPanels = kDim / 64, kThreads = 128 * (1 + kConsumers);
  static constexpr int kKeyPanel = kKeys * 128;  // [B]
  static constexpr int kBytesQ = kConsumers * kPanels * kBox, kBytesK = kPanels * kKeyPanel;
  static constexpr int kTiles = kStagesQ * kBytesQ + kStages * 2 * kBytesK;
  static constexpr int kShared =
      kTiles + kBytesQ + 1024 <= 227 * 1024 ? kTiles + kBytesQ + 1024 : kTiles + 1024;
  // Results have a place of their own, so that the next queries can arrive before they have left.
  static constexpr bool kOwnResults = kShared > kTiles + 1024;
  // Who says that queries have been used: the warps, or with results in their place who stored these.
  static constexpr int kReadersQ = kOwnResults ? 4 * kConsumers : kConsumers;
  static constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
};

#define LIST32                                                             \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LIST48 LIST32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define LIST64 \
  LIST48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
/// Scores: 64 queries x 128 keys, 16 deep; queries and keys lie in shared memory, both along the depth.
__device__ void multiply_scores(float (&d)[64], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LIST64 "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16), D16(32), D16(48)
      : "l"(q), "l"(k), "r"(static_cast<int>(add)));
}
/// Values: 64 queries x 128 columns, 16 keys deep; the weights come from registers.
__device__ void multiply_values(float (&d)[64], const uint32_t* p, uint64_t v, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LIST64
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : D16(0), D16(16), D16(32), D16(48)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v), "r"(static_cast<int>(add)));
}

#undef D16
#undef D4

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
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
      if (key >= keys || (key > query + i / 2 * 8)) s[j * 4 + i] = -INFINITY;
    }
}
template <int kScores>
__device__ void to_weights(uint32_t (&p)[kScores / 2], const float (&s)[kScores]) {
#pragma unroll
  for (int j = 0; j < kScores / 2; ++j) p[j] = pack(s[j * 2], s[j * 2 + 1]);
}

__global__ void __launch_bounds__(P::kThreads, 1)
    attention(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
              const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_o, int heads,
              int group_size, int n, float factor, int* next) {
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
  // Those with the most keys first. The L2 cache holds keys and values of all heads.
  const auto place_of = [&](int tile, int& head, int& first) {
    head = tile % heads, first = (blocks - 1 - tile / heads) * P::kQueries;
  };
  const auto key_tiles = [&](int first) {
    const int keys = first + P::kQueries < n ? first + P::kQueries : n;
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
          load(k_tile(stage) + p * P::kKeyPanel, &map_k, p * 64, j * P::kKeys, head / group_size,
               full_k + stage);
        if (j == last) {
          wait(empty_q + stage_q, phase_q ^ 1);
          current[stage_q] = tile;
          arrive_and_expect(full_q + stage_q, P::kBytesQ);
          for (int c = 0; c < P::kConsumers; ++c)
            for (int p = 0; p < P::kPanels; ++p)
              load(q_tile(stage_q) + (c * P::kPanels + p) * kBox, &map_q, p * 64, first + c * 64, head,
                   full_q + stage_q);
          if (++stage_q == P::kStagesQ) stage_q = 0, phase_q ^= 1;
        }
        wait(empty_v + stage, phase ^ 1);
        arrive_and_expect(full_v + stage, P::kBytesK);
        for (int p = 0; p < P::kPanels; ++p)
          load(v_tile(stage) + p * P::kKeyPanel, &map_v, p * 64, j * P::kKeys, head / group_size,
               full_v + stage);
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
    const uint8_t* const mine = q_tile(at_q) + consumer * P::kPanels * kBox;
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i)
      multiply_scores(s, matrix(mine + i / 4 * kBox + i % 4 * 32, 0, 1024),
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
    if ((j + 1) * P::kKeys > n || ((j + 1) * P::kKeys > first + consumer * 64 + 1))
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
        (P::kOwnResults ? aligned + P::kTiles : q_tile(stage_of)) + consumer * P::kPanels * kBox;
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
        *reinterpret_cast<uint32_t*>(results + c / 8 * kBox + at * 128 + (c % 8 ^ at % 8) * 16 + me % 4 * 4) =
            pack(o[c * 4 + half * 2] * scale, o[c * 4 + half * 2 + 1] * scale);
      }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(8 + consumer) : "memory");
    if (me == 0) {
      for (int c = 0; c < P::kPanels; ++c)
        store(&map_o, results + c * kBox, c * 64, first_of + consumer * 64, head_of);
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

// ---- the layer --------------------------------------------------------------------------------------------
decltype(&cuTensorMapEncodeTiled) encoder() {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  return encode;
}
/// A matrix, or the heads of each row, as TMA sees them: boxes of 64 columns, which make 128 bytes, and so
/// many rows.
CUtensorMap map_of(const bf16* matrix, int64_t rows, int64_t columns, int box_rows, int64_t heads = 0) {
  const cuuint64_t wide = static_cast<cuuint64_t>(heads > 0 ? kDim : columns);
  const cuuint64_t size[] = {wide, static_cast<cuuint64_t>(rows), static_cast<cuuint64_t>(heads)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * sizeof(bf16), kDim * sizeof(bf16)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows), 1}, step[] = {1, 1, 1};
  CUtensorMap map;
  if (encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, heads > 0 ? 3 : 2, const_cast<bf16*>(matrix), size,
                pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the matrix");
  return map;
}
int multiprocessors() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

/// n: columns of the result; w has 2 n rows where it is gated.
template <End kEnd>
void multiply(const bf16* a, const bf16* w, const CUtensorMap& to, const CUtensorMap& second,
              const CUtensorMap& third, const Operands& given, int64_t m, int64_t k, int64_t n,
              cudaStream_t stream) {
  const int64_t wide = kEnd == End::kGated ? kTileN / 2 : kTileN;
  const int64_t tiles = (m + kCluster * kTileM - 1) / (kCluster * kTileM) * ((n + wide - 1) / wide);
  const int64_t fit = multiprocessors() / kCluster, blocks = (tiles < fit ? tiles : fit) * kCluster;
  cudaFuncSetAttribute(product<kEnd>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  product<kEnd><<<static_cast<unsigned>(blocks), kThreads, kSharedBytes, stream>>>(
      map_of(a, m, k, kTileM), map_of(w, kEnd == End::kGated ? 2 * n : n, k, kTileN / 2), to, second, third,
      given, static_cast<int>(m), static_cast<int>(k), static_cast<int>(n));
}
void attend(const bf16* q, const bf16* k, const bf16* v, bf16* o, int64_t t, int64_t hq, int64_t hk,
            int* next, cudaStream_t stream) {
  const int64_t tiles = hq * ((t + P::kQueries - 1) / P::kQueries), fit = multiprocessors();
  cudaMemsetAsync(next, 0, sizeof(int), stream);
  cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kShared);
  attention<<<static_cast<unsigned>(tiles < fit ? tiles : fit), P::kThreads, P::kShared, stream>>>(
      map_of(q, t, hq * kDim, 64, hq), map_of(k, t, hk * kDim, P::kKeys, hk),
      map_of(v, t, hk * kDim, P::kKeys, hk), map_of(o, t, hq * kDim, 64, hq), static_cast<int>(hq),
      static_cast<int>(hq / hk), static_cast<int>(t),
      static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim))), next);
}

/// The workspace, cut into pieces that start on 256 bytes.
struct Workspace {
  size_t bytes = 0;
  float2* table;
  bf16 *a, *q, *o, *r, *h;
  float *squares_1, *squares_2;
  int* next;

  Workspace(void* workspace, int64_t t, int64_t hidden, int64_t f) {
    const auto piece = [&](auto*& to, int64_t count) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(static_cast<uint8_t*>(workspace) + bytes);
      bytes += (static_cast<size_t>(count) * sizeof(*to) + 255) / 256 * 256;
    };
    piece(table, t * (kDim / 2)), piece(a, t * hidden), piece(q, t * hidden), piece(o, t * hidden),
        piece(r, t * hidden), piece(h, t * f);
    piece(squares_1, t), piece(squares_2, (hidden + kTileN - 1) / kTileN * t), piece(next, 1);
  }
};

extern "C" size_t workspace_bytes(int64_t t, int64_t hq, int64_t /*hk*/, int64_t f) {
  return Workspace(nullptr, t, hq * kDim, f).bytes;
}

extern "C" void launch(const bf16* x /*[t,128 * hq]*/, const bf16* g_1 /*[128 * hq]*/,
                       const bf16* w_qkv /*[128 * (hq + 2 * hk),128 * hq]*/,
                       const bf16* w_o /*[128 * hq,128 * hq]*/, const bf16* g_2 /*[128 * hq]*/,
                       const bf16* w_gu /*[2 * f,128 * hq]*/, const bf16* w_down /*[128 * hq,f]*/,
                       bf16* y /*[t,128 * hq]*/, bf16* k /*[t,hk,128]*/, bf16* v /*[t,hk,128]*/, float eps,
                       float theta, int64_t t, int64_t hq, int64_t hk, int64_t f, void* workspace,
                       cudaStream_t stream) {
  const int64_t hidden = hq * kDim;
  const Workspace w(workspace, t, hidden, f);
  make_table<<<static_cast<unsigned>(t), kDim / 2, 0, stream>>>(w.table, theta);
  prepare<<<static_cast<unsigned>(t), kSmallThreads, 0, stream>>>(x, g_1, w.a, w.squares_1,
                                                                  static_cast<int>(hidden));
  Operands given{};
  given.table = w.table, given.hq = static_cast<int>(hq), given.hk = static_cast<int>(hk),
  given.norm = static_cast<int>(hidden), given.eps = eps;
  given.squares = w.squares_1, given.parts = 1;
  multiply<End::kHeads>(w.a, w_qkv, map_of(w.q, t, hidden, 16), map_of(k, t, hk * kDim, 16),
                        map_of(v, t, hk * kDim, 16), given, t, hidden, hidden + 2 * hk * kDim, stream);
  attend(w.q, k, v, w.o, t, hq, hk, w.next, stream);
  const CUtensorMap map_r = map_of(w.r, t, hidden, 16), map_y = map_of(y, t, hidden, 16),
                    map_h = map_of(w.h, t, f, 16);
  given.x = x, given.gain = g_2, given.squares_to = w.squares_2;
  multiply<End::kResidualAndNorm>(w.o, w_o, map_r, map_of(w.a, t, hidden, 16), map_r, given, t, hidden,
                                  hidden, stream);
  given.squares = w.squares_2, given.parts = static_cast<int>((hidden + kTileN - 1) / kTileN);
  multiply<End::kGated>(w.a, w_gu, map_h, map_h, map_h, given, t, hidden, f, stream);
  given.x = w.r;
  multiply<End::kResidual>(w.h, w_down, map_y, map_y, map_y, given, t, f, hidden, stream);
}
