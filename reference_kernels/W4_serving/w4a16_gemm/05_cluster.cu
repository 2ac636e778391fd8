// Rung 5: a warp fetches for itself, x stays in registers, and the grid fills the GPU once.
//
// Changed     one bulk copy brings a tile, three are on their way for each of up to 14 warps, and no barrier
//             of the block comes before the sums meet. A warp's part of x for a group goes from the L2 cache
//             into registers before the tile has arrived. The 136 that decoding adds to a code leaves through
//             one more product: -136 times the sum of x. Where whole rows of tiles would leave
//             multiprocessors idle, pairs of blocks share k, and their sums meet in distributed shared
//             memory.
// Why         the weights stream in 8 us, so what counts is the start, the end and the last wave: at 28672 x
//             4096 rung 4 has 448 blocks for 132 multiprocessors, at 4096 x 14336 it has 64. And rung 4
//             spends twice as many instructions on a code.
// Prediction  1.1x rung 4 at the measured size, 1.3x where its grid does not fit.
// Came        22.5 us on an H100, 1561 GB/s, 1.11 times the rung before. 224 % of the native baseline.
//
// Shapes      x [m, k] bf16, w [n, k] int4x2, scales [n, k / 128] bf16, y [m, n] bf16.
// Launch      clusters of 1 or 2 blocks of up to 14 warps; a warp owns 64 rows of w and some groups of k.
// Resources   up to 128 registers, 240 for more than 16 rows of x; up to 173 KB of shared memory;
//             prepared: the size of w and the scales.
// Cost        2 m n k FLOPs; n k / 2 + n k / 64 bytes of weights; x once for each tile, from the L2 cache.
// Divides     k % 128 == 0 (the problem says so); m and n anything.
// Source      Marlin (Frantar et al., 2024) for the order of the weights; the rest is this project's.
//             Needs sm_90.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cg = cooperative_groups;
using bf16 = __nv_bfloat16;

constexpr int kGroup = 128;          // codes of a row that share a scale
constexpr int kRows = 64;            // rows of w in a tile
constexpr int kTiles = kRows / 16;   // of an mma
constexpr int kPairs = kGroup / 32;  // of steps: a lane multiplies eight neighbours of x in two
constexpr int kScaleBytes = kRows * 2;
constexpr int kChunk = kScaleBytes + kRows * kGroup / 2;  // a tile's share of a group: its scales, its codes
constexpr int kMostWarps = 14;
constexpr int kStages = 3;  // chunks of a warp on their way
constexpr int kSumPad = 4;  // floats between the sums of two rows of x

/// What the registers allow, with that many times eight rows of x.
constexpr int most_warps(int m_tiles) { return m_tiles > 2 ? 8 : kMostWarps; }

/// How the work is cut, the same for all blocks.
struct Plan {
  int cluster;         // blocks that share k: 1 or 2
  int warps_n;         // warps beside each other along n
  int warps_k;         // warps that share a block's part of k
  int block_groups;    // groups of k of a block
  int warp_groups;     // groups of k of a warp
  int blocks, shared;  // shared: bytes
};

// ---- prepare: the order in which a warp reads ------------------------------------------------------------
/// The k of the codes in one word: lane q of four multiplies eight neighbours of x in two steps.
__host__ __device__ inline int k_of(int step, int q, int pair) {
  return step / 2 * 32 + q * 8 + step % 2 * 4 + pair * 2;
}

__device__ unsigned code_at(const uint8_t* w, int64_t row, int64_t column, int64_t n, int64_t k) {
  if (row >= n) return 0;  // a row that does not exist: zeros
  const unsigned pair = w[(row * k + column) / 2];
  return column % 2 == 0 ? pair & 15 : pair >> 4;
}

/// A thread a word: eight codes, those of one lane for one step of one mma tile. The first threads of a chunk
/// also move two scales each.
__global__ void shuffle(const uint8_t* __restrict__ w, const bf16* __restrict__ scales, int64_t n, int64_t k,
                        uint8_t* __restrict__ chunks) {
  const int64_t groups = k / kGroup;
  const int64_t tile = blockIdx.x / groups, group = blockIdx.x % groups;
  uint8_t* const chunk = chunks + static_cast<int64_t>(blockIdx.x) * kChunk;
  if (threadIdx.x < kRows) {  // eight scales of a lane, side by side
    const int64_t row = tile * kRows + threadIdx.x % 8 * 8 + threadIdx.x / 8;
    reinterpret_cast<bf16*>(chunk)[threadIdx.x] =
        row < n ? scales[row * groups + group] : __float2bfloat16(0.0f);
  }
  for (int i = threadIdx.x; i < kRows * kGroup / 8; i += blockDim.x) {
    const int t = i % kTiles, lane = i / kTiles % 32, step = i / (kTiles * 32);
    unsigned word = 0;
    for (int a = 0; a < 4; ++a) {  // the four registers of an mma's left operand
      const int64_t row = tile * kRows + t * 16 + a % 2 * 8 + lane / 4;
      const int64_t column = group * kGroup + k_of(step, lane % 4, a / 2);
      word |= code_at(w, row, column, n, k) << (4 * a) | code_at(w, row, column + 1, n, k) << (4 * a + 16);
    }
    reinterpret_cast<unsigned*>(chunk + kScaleBytes)[i] = word;
  }
}

// ---- bulk copies -----------------------------------------------------------------------------------------
__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
using Arrival = unsigned long long;  // an mbarrier
__device__ void init(Arrival* at) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(at)) : "memory");
}
__device__ void expect(Arrival* at, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)),
               "r"(bytes)
               : "memory");
}
__device__ void copy_bulk(void* to, const void* from, unsigned bytes, Arrival* at) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(at))
      : "memory");
}
__device__ void wait_for(Arrival* at, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred there;\n"
      "WAITING:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
      "@there bra.uni THERE;\n"
      "bra.uni WAITING;\n"
      "THERE:\n"
      "}\n" ::"r"(shared_address(at)),
      "r"(parity)
      : "memory");
}

// ---- codes to bf16 ---------------------------------------------------------------------------------------
/// 0x4300 is 128 as bf16, its last mantissa bit is worth 1, and flipping the top bit of a code adds 8: 136 +
/// code, for both halves of a word at once. The 136 leaves again through -136 sum(x).
__device__ void decode(unsigned (&a)[4], unsigned word) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;"
        : "=r"(a[i])
        : "r"(word >> (4 * i)), "r"(0x000f000fu), "r"(0x43084308u));
}
constexpr unsigned kOffset = 0xc308c308u;  // -136 in bf16, twice

/// c += a * b for 16 x 8 results, 16 deep.
__device__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

/// A lane's part of x for one group, and -136 times the sums over the group, as the results of an mma lie.
template <int kM>
struct Right {
  uint4 x[kM][kPairs];
  float offset[kM][2];  // two columns; all rows are alike

  __device__ void load(const bf16* const (&row)[kM], int group) {
#pragma unroll
    for (int j = 0; j < kM; ++j)
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair)
        x[j][pair] =
            *reinterpret_cast<const uint4*>(row[j] + static_cast<int64_t>(group) * kGroup + pair * 32);
    const unsigned constant[4] = {kOffset, kOffset, kOffset, kOffset};
#pragma unroll
    for (int j = 0; j < kM; ++j) {
      float sums[4] = {};
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        multiply(sums, constant, x[j][pair].x, x[j][pair].y);
        multiply(sums, constant, x[j][pair].z, x[j][pair].w);
      }
      offset[j][0] = sums[0], offset[j][1] = sums[1];
    }
  }
};

/// One chunk: temp = codes * x over a group, then sum += scale * temp.
template <int kM>
__device__ void multiply_chunk(float (&sum)[kTiles][kM][4], const uint8_t* chunk, const Right<kM>& right) {
  const int lane = threadIdx.x % 32;
  float temp[kTiles][kM][4];
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int j = 0; j < kM; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) temp[t][j][e] = right.offset[j][e % 2];
  const uint4* const codes = reinterpret_cast<const uint4*>(chunk + kScaleBytes) + lane;
#pragma unroll
  for (int step = 0; step < 2 * kPairs; ++step) {
    const uint4 words = codes[step * 32];
    const unsigned word[kTiles] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      unsigned left[4];
      decode(left, word[t]);
#pragma unroll
      for (int j = 0; j < kM; ++j) {
        const uint4 x = right.x[j][step / 2];
        multiply(temp[t][j], left, step % 2 == 0 ? x.x : x.z, step % 2 == 0 ? x.y : x.w);
      }
    }
  }
  const uint4 packed = reinterpret_cast<const uint4*>(chunk)[lane / 4];
  const float scale[kTiles][2] = {{low(packed.x), high(packed.x)},
                                  {low(packed.y), high(packed.y)},
                                  {low(packed.z), high(packed.z)},
                                  {low(packed.w), high(packed.w)}};
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int j = 0; j < kM; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[t][j][e] = fmaf(scale[t][e / 2], temp[t][j][e], sum[t][j][e]);
}

__device__ float4 added(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/// Four neighbours of a row of y; those behind its end are not stored.
__device__ void store(bf16* y, int64_t row, int column, int n, float4 v) {
  bf16* const to = y + row * n + column;
  const __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(v.x, v.y), __floats2bfloat162_rn(v.z, v.w)};
  if (n % 4 == 0) {
    if (column < n) *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(pairs);
  } else {
    const bf16 values[4] = {pairs[0].x, pairs[0].y, pairs[1].x, pairs[1].y};
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (column + e < n) to[e] = values[e];
  }
}

/// Adds up the sums of all warps, `parts` [part of k][row of x][row of w], and with two blocks those of both:
/// each stores one half of the columns.
template <int kM>
__device__ void store_sums(float* parts, bf16* y, int m0, int present, int first_column, int n,
                           const Plan& plan, int rank) {
  cg::cluster_group cluster = cg::this_cluster();
  const int width = plan.warps_n * kRows, pitch = width + kSumPad, slice = width / plan.cluster;
  const auto own = [&](int row, int column) {
    float4 total = make_float4(0, 0, 0, 0);
#pragma unroll 4
    for (int p = 0; p < plan.warps_k; ++p)
      total = added(total, *reinterpret_cast<const float4*>(parts + (p * kM * 8 + row) * pitch + column));
    return total;
  };
  const int vectors = slice / 4, all = present * vectors, threads = plan.warps_n * plan.warps_k * 32;
  if (plan.cluster == 2) {
    for (int i = threadIdx.x; i < all; i += threads) {
      const int row = i / vectors, column = (rank ^ 1) * slice + i % vectors * 4;
      const float4 total = own(row, column);
      *reinterpret_cast<float4*>(parts + row * pitch + column) = total;  // only this thread uses these
    }
    cluster.sync();  // the sums for the other block are there
  }
  const float* const theirs = plan.cluster == 2 ? cluster.map_shared_rank(parts, rank ^ 1) : nullptr;
  for (int i = threadIdx.x; i < all; i += threads) {
    const int row = i / vectors, column = rank * slice + i % vectors * 4;
    float4 total = own(row, column);
    if (theirs) total = added(total, *reinterpret_cast<const float4*>(theirs + row * pitch + column));
    store(y, m0 + row, first_column + column, n, total);
  }
  if (plan.cluster == 2) cluster.sync();  // nobody leaves while the other block still reads its sums
}

template <int kM>
__global__ void __launch_bounds__(most_warps(kM) * 32, 1)
    w4a16(const uint8_t* __restrict__ chunks, const bf16* __restrict__ x, bf16* __restrict__ y, int m, int k,
          int n, const Plan plan) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ Arrival full[kMostWarps][kStages];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rank = static_cast<int>(blockIdx.x) % plan.cluster;
  const int block_tile = static_cast<int>(blockIdx.x) / plan.cluster * plan.warps_n;
  const int groups = k / kGroup, tiles = (n + kRows - 1) / kRows;
  const int m0 = static_cast<int>(blockIdx.y) * kM * 8, present = min(kM * 8, m - m0);  // rows of x

  const int part = warp / plan.warps_n, tile = block_tile + warp % plan.warps_n;
  const int first = rank * plan.block_groups + part * plan.warp_groups;
  const int end = min(min(first + plan.warp_groups, (rank + 1) * plan.block_groups), groups);
  const int count = tile < tiles ? max(0, end - first) : 0;  // chunks
  uint8_t* const ring = shared + warp * kStages * kChunk;
  const uint8_t* const from = chunks + (static_cast<int64_t>(tile) * groups + first) * kChunk;
  const auto fetch = [&](int i) {
    Arrival* const at = &full[warp][i % kStages];
    expect(at, kChunk);
    copy_bulk(ring + i % kStages * kChunk, from + static_cast<int64_t>(i) * kChunk, kChunk, at);
  };
  if (lane == 0) {
    for (int i = 0; i < kStages; ++i) init(&full[warp][i]);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int i = 0; i < min(kStages, count); ++i) fetch(i);
  }
  __syncwarp();  // the barriers are ready

  const bf16* row[kM];  // a row behind the last one is read as the last one, and not stored
#pragma unroll
  for (int j = 0; j < kM; ++j)
    row[j] = x + static_cast<int64_t>(m0 + min(j * 8 + lane / 4, present - 1)) * k + lane % 4 * 8;
  float sum[kTiles][kM][4] = {};
  int stage = 0, parity = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    Right<kM> right;
    right.load(row, first + i);
    wait_for(&full[warp][stage], parity);
    multiply_chunk<kM>(sum, ring + stage * kChunk, right);
    __syncwarp();  // all lanes have read the chunk
    if (lane == 0 && i + kStages < count) fetch(i + kStages);
    if (++stage == kStages) stage = 0, parity ^= 1;
  }

  __syncthreads();  // nobody needs the ring any more
  float* const parts = reinterpret_cast<float*>(shared);
  const int pitch = plan.warps_n * kRows + kSumPad;
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int j = 0; j < kM; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int r = j * 8 + lane % 4 * 2 + e % 2,
                  column = warp % plan.warps_n * kRows + t * 16 + e / 2 * 8 + lane / 4;
        parts[(part * kM * 8 + r) * pitch + column] = sum[t][j][e];
      }
  __syncthreads();
  store_sums<kM>(parts, y, m0, present, block_tile * kRows, n, plan, rank);
}

/// The plan whose busiest multiprocessor has the fewest chunks; one block for all of k, if that costs
/// nothing.
Plan plan_of(int m_tiles, int64_t k, int64_t n) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int64_t tiles = (n + kRows - 1) / kRows, groups = k / kGroup;
  const int most = most_warps(m_tiles);
  Plan best{};
  int64_t least = INT64_MAX;
  for (int cluster = 1; cluster <= 2; ++cluster) {
    const int64_t clusters = std::max(1, multiprocessors / cluster);
    Plan p{};
    p.cluster = cluster;
    p.warps_n = static_cast<int>(std::min<int64_t>((tiles + clusters - 1) / clusters, most));
    p.block_groups = static_cast<int>((groups + cluster - 1) / cluster);
    p.warps_k = std::max(1, std::min(most / p.warps_n, p.block_groups));
    p.warp_groups = (p.block_groups + p.warps_k - 1) / p.warps_k;
    p.blocks = static_cast<int>((tiles + p.warps_n - 1) / p.warps_n) * cluster;
    const int sums = p.warps_k * m_tiles * 8 * (p.warps_n * kRows + kSumPad) * 4;
    p.shared = std::max(p.warps_n * p.warps_k * kStages * kChunk, sums);
    const int64_t waves = (p.blocks + clusters * cluster - 1) / (clusters * cluster);
    const int64_t cost = waves * p.warps_n * p.block_groups;
    if (cost < least) least = cost, best = p;
  }
  return best;
}

template <int kM>
void launch_with(const bf16* x, bf16* y, int64_t m, int64_t k, int64_t n, const void* prepared,
                 cudaStream_t stream) {
  const Plan plan = plan_of(kM, k, n);
  cudaFuncSetAttribute(w4a16<kM>, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared);
  cudaLaunchConfig_t config{};
  config.gridDim =
      dim3(static_cast<unsigned>(plan.blocks), static_cast<unsigned>((m + kM * 8 - 1) / (kM * 8)));
  config.blockDim = dim3(static_cast<unsigned>(plan.warps_n * plan.warps_k * 32));
  config.dynamicSmemBytes = static_cast<size_t>(plan.shared);
  config.stream = stream;
  cudaLaunchAttribute cluster[1];
  cluster[0].id = cudaLaunchAttributeClusterDimension;
  cluster[0].val.clusterDim.x = static_cast<unsigned>(plan.cluster);
  cluster[0].val.clusterDim.y = cluster[0].val.clusterDim.z = 1;
  config.attrs = cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, w4a16<kM>, static_cast<const uint8_t*>(prepared), x, y, static_cast<int>(m),
                     static_cast<int>(k), static_cast<int>(n), plan);
}

extern "C" size_t prepared_bytes(int64_t /*m*/, int64_t k, int64_t n) {
  return static_cast<size_t>((n + kRows - 1) / kRows * (k / kGroup) * kChunk);
}

extern "C" void prepare(const uint8_t* w /*[n,k]*/, const bf16* scales /*[n,k/128]*/, int64_t /*m*/,
                        int64_t k, int64_t n, void* prepared, cudaStream_t stream) {
  const int64_t blocks = (n + kRows - 1) / kRows * (k / kGroup);
  shuffle<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(w, scales, n, k,
                                                             static_cast<uint8_t*>(prepared));
}

extern "C" void launch(const bf16* x /*[m,k]*/, const uint8_t* /*w [n,k]*/, const bf16* /*scales [n,k/128]*/,
                       bf16* y /*[m,n]*/, int64_t m, int64_t k, int64_t n, const void* prepared,
                       void* /*workspace*/, cudaStream_t stream) {
  if (m <= 8)
    launch_with<1>(x, y, m, k, n, prepared, stream);
  else if (m <= 16)
    launch_with<2>(x, y, m, k, n, prepared, stream);
  else
    launch_with<4>(x, y, m, k, n, prepared, stream);
}
