// Rung 5: bulk copies, the whole matrix on its way at once, k split over a cluster.
//
// Changed     a warp fetches its chunks by itself: one bulk copy for each (4,224 bytes, the scales included),
//             several on their way, no barrier of the block. A cluster of blocks splits k; the parts of a sum
//             meet in distributed shared memory. The grid fills the GPU exactly once.
// Why         the weights stream in 8 us, so what counts is the start, the end and the last wave. 33 MB of
//             codes nearly fit into the shared memory of all multiprocessors: all of it can be asked for in
//             the first microsecond.
// Prediction  1.4x rung 4 for few rows of x: 12 us at the measured size.
//
// Shapes      x [m, k] bf16, w [n, k] codes of 4 bits, scales [n, k / 128] bf16, y [m, n] bf16.
// Launch      clusters of 1 to 8 blocks of up to 16 warps; a warp owns 64 rows of w and some groups of k.
// Resources   up to 128 registers; up to 227 KB of shared memory; prepared: the size of w and the scales.
// Cost        2 m n k FLOPs; n k / 2 + n k / 64 + 2 m (k + n) bytes.
// Divides     k % 128 == 0 (the problem says so); m and n anything.
// Source      Marlin (Frantar et al., 2024) for the shuffle in front; bulk copies and clusters: CUDA C++
//             programming guide. Needs sm_90.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cg = cooperative_groups;
using bf16 = __nv_bfloat16;

constexpr int kGroup = 128;                     // codes of a row that share a scale
constexpr int kRows = 64;                       // rows of w in a tile
constexpr int kTiles = kRows / 16;              // of an mma
constexpr int kScaleBytes = kRows * 2;
constexpr int kChunk = kScaleBytes + kRows * kGroup / 2;  // a tile's share of a group: its scales, its codes
constexpr int kMostWarps = 16, kMostStages = 16;
constexpr int most_warps(int m_tiles) { return m_tiles > 2 ? kMostWarps / 2 : kMostWarps; }  // what the registers allow
constexpr int kMostShared = 227 * 1024;
constexpr int kRowPad = 64;  // [B] between rows of x, so that two rows lie in different banks
constexpr int kSumPad = 4;   // floats between the sums of two rows of x

/// How the work is cut, the same for all blocks.
struct Plan {
  int cluster;        // blocks that split k
  int warps_n;        // tiles of a block
  int warps_k;        // warps that split a block's part of k
  int block_groups;   // groups of k of a block
  int warp_groups;    // groups of k of a warp
  int stages;         // chunks of a warp on their way
  int blocks, shared; // shared: bytes
};

// ---- prepare: the order in which a warp reads ------------------------------------------------------------
/// The k of the codes in one word: lane q of four multiplies eight neighbours of x in two steps.
__host__ __device__ inline int k_of(int step, int q, int pair) { return step / 2 * 32 + q * 8 + step % 2 * 4 + pair * 2; }

__device__ unsigned code_at(const uint8_t* w, int64_t row, int64_t column, int64_t n, int64_t k) {
  if (row >= n) return 8;  // a row that does not exist: zeros
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
    reinterpret_cast<bf16*>(chunk)[threadIdx.x] = row < n ? scales[row * groups + group] : __float2bfloat16(0.0f);
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
__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
using Arrival = unsigned long long;  // an mbarrier
__device__ void init(Arrival* at) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(at)) : "memory"); }
__device__ void expect(Arrival* at, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)), "r"(bytes) : "memory");
}
__device__ void copy_bulk(void* to, const void* from, unsigned bytes, Arrival* at) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
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
/// 0x4300 is 128 as bf16, and its last mantissa bit is worth 1: with a code in the last four bits it is 128 +
/// code, for both halves of a word at once. The 128 and the zero point of 8 leave again through -136 sum(x).
__device__ void decode(unsigned (&a)[4], unsigned word) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(a[i]) : "r"(word >> (4 * i)), "r"(0x000f000fu), "r"(0x43004300u));
}
constexpr float kOffset = -136;

/// c += a * b for 16 x 8 results, 16 deep.
__device__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ float sum_of(uint4 v) {
  return ((low(v.x) + high(v.x)) + (low(v.y) + high(v.y))) + ((low(v.z) + high(v.z)) + (low(v.w) + high(v.w)));
}

/// One chunk: temp = codes * x over a group, then sum += scale * temp.
template <int kM>
__device__ void multiply_chunk(float (&sum)[kTiles][kM][4], const uint8_t* chunk, const uint8_t* const (&x)[kM],
                               const float* offsets) {
  const int lane = threadIdx.x % 32;
  float temp[kTiles][kM][4];
#pragma unroll
  for (int j = 0; j < kM; ++j) {
    const float2 offset = *reinterpret_cast<const float2*>(offsets + j * 8 + lane % 4 * 2);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) temp[t][j][0] = temp[t][j][2] = offset.x, temp[t][j][1] = temp[t][j][3] = offset.y;
  }
  const uint4* const codes = reinterpret_cast<const uint4*>(chunk + kScaleBytes) + lane;
#pragma unroll
  for (int pair = 0; pair < kGroup / 32; ++pair) {
    uint4 right[kM];
#pragma unroll
    for (int j = 0; j < kM; ++j) right[j] = *reinterpret_cast<const uint4*>(x[j] + pair * 64);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4 words = codes[(pair * 2 + half) * 32];
      const unsigned word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        unsigned left[4];
        decode(left, word[t]);
#pragma unroll
        for (int j = 0; j < kM; ++j)
          multiply(temp[t][j], left, half == 0 ? right[j].x : right[j].z, half == 0 ? right[j].y : right[j].w);
      }
    }
  }
  const uint4 packed = reinterpret_cast<const uint4*>(chunk)[lane / 4];
  const float scale[kTiles][2] = {{low(packed.x), high(packed.x)}, {low(packed.y), high(packed.y)},
                                  {low(packed.z), high(packed.z)}, {low(packed.w), high(packed.w)}};
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int j = 0; j < kM; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[t][j][e] = fmaf(scale[t][e / 2], temp[t][j][e], sum[t][j][e]);
}

template <int kM>
__global__ void __launch_bounds__(most_warps(kM) * 32, 1)
    w4a16(const uint8_t* __restrict__ chunks, const bf16* __restrict__ x, bf16* __restrict__ y, int m, int k, int n,
          const Plan plan) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ Arrival full[kMostWarps][kMostStages], x_full;
  cg::cluster_group cluster = cg::this_cluster();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const int rank = static_cast<int>(blockIdx.x) % plan.cluster, first_tile = static_cast<int>(blockIdx.x) / plan.cluster * plan.warps_n;
  const int groups = k / kGroup, tiles = (n + kRows - 1) / kRows;
  const int m0 = static_cast<int>(blockIdx.y) * kM * 8, present = min(kM * 8, m - m0);  // rows of x
  const int block_first = rank * plan.block_groups, block_count = max(0, min(plan.block_groups, groups - block_first));
  const int pitch = plan.block_groups * kGroup * 2 + kRowPad;
  uint8_t* const x_rows = shared;
  float* const offsets = reinterpret_cast<float*>(x_rows + kM * 8 * pitch);  // -136 sum(x) [group][row]
  uint8_t* const ring = reinterpret_cast<uint8_t*>(offsets + plan.block_groups * kM * 8) + warp * plan.stages * kChunk;

  const int tile = first_tile + warp % plan.warps_n, part = warp / plan.warps_n;
  const int first = part * plan.warp_groups;  // in the block's groups
  const int count = tile < tiles ? max(0, min(plan.warp_groups, block_count - first)) : 0;
  const uint8_t* const from = chunks + (static_cast<int64_t>(tile) * groups + block_first + first) * kChunk;
  const auto fetch = [&](int i) {
    Arrival* const at = &full[warp][i % plan.stages];
    expect(at, kChunk);
    copy_bulk(ring + i % plan.stages * kChunk, from + static_cast<int64_t>(i) * kChunk, kChunk, at);
  };

  if (lane == 0) {
    for (int i = 0; i < plan.stages; ++i) init(&full[warp][i]);
    if (warp == 0) init(&x_full);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (warp == 0) expect(&x_full, static_cast<unsigned>(present * block_count * kGroup * 2));
    for (int i = 0; i < min(plan.stages, count); ++i) fetch(i);
  }
  __syncthreads();
  if (warp == 0 && block_count > 0)
    for (int r = lane; r < present; r += 32)
      copy_bulk(x_rows + r * pitch, x + static_cast<int64_t>(m0 + r) * k + block_first * kGroup,
                static_cast<unsigned>(block_count * kGroup * 2), &x_full);
  wait_for(&x_full, 0);
  // Sums of x, a quarter of a group by each thread.
  for (int i = threadIdx.x; i < block_count * kM * 8 * 4; i += blockDim.x) {
    const int row = i / 4 % (kM * 8), group = i / (kM * 8 * 4);
    const uint4* v = reinterpret_cast<const uint4*>(x_rows + min(row, present - 1) * pitch + group * kGroup * 2) + i % 4;
    float s = (sum_of(v[0]) + sum_of(v[4])) + (sum_of(v[8]) + sum_of(v[12]));
    s += __shfl_xor_sync(0xffffffffu, s, 1);
    s += __shfl_xor_sync(0xffffffffu, s, 2);
    if (i % 4 == 0) offsets[group * kM * 8 + row] = kOffset * s;
  }
  __syncthreads();

  float sum[kTiles][kM][4] = {};
  const uint8_t* x_at[kM];
#pragma unroll
  for (int j = 0; j < kM; ++j)
    x_at[j] = x_rows + min(j * 8 + lane / 4, present - 1) * pitch + first * kGroup * 2 + lane % 4 * 16;
  int stage = 0, parity = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    wait_for(&full[warp][stage], parity);
    multiply_chunk<kM>(sum, ring + stage * kChunk, x_at, offsets + (first + i) * kM * 8);
    __syncwarp();  // all lanes have read the chunk
    if (lane == 0 && i + plan.stages < count) fetch(i + plan.stages);
#pragma unroll
    for (int j = 0; j < kM; ++j) x_at[j] += kGroup * 2;
    if (++stage == plan.stages) stage = 0, parity ^= 1;
  }

  // The sums of all warps, in place of x and the ring: [part of k][row of x][row of w].
  __syncthreads();
  float* const parts = reinterpret_cast<float*>(shared);
  const int width = plan.warps_n * kRows, sum_pitch = width + kSumPad;
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int j = 0; j < kM; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = j * 8 + lane % 4 * 2 + e % 2, column = warp % plan.warps_n * kRows + t * 16 + e / 2 * 8 + lane / 4;
        parts[(part * kM * 8 + row) * sum_pitch + column] = sum[t][j][e];
      }
  cluster.sync();  // all parts are complete
  const int slice = width / plan.cluster;  // columns that this block adds up
  for (int i = threadIdx.x; i < present * slice / 4; i += blockDim.x) {
    const int row = i / (slice / 4), column = rank * slice + i % (slice / 4) * 4;
    float4 total = make_float4(0, 0, 0, 0);
    for (int b = 0; b < plan.cluster; ++b) {
      const float* const theirs = cluster.map_shared_rank(parts, b);
      for (int p = 0; p < plan.warps_k; ++p) {
        const float4 v = *reinterpret_cast<const float4*>(theirs + (p * kM * 8 + row) * sum_pitch + column);
        total.x += v.x, total.y += v.y, total.z += v.z, total.w += v.w;
      }
    }
    const int at = first_tile * kRows + column;
    bf16* const to = y + static_cast<int64_t>(m0 + row) * n + at;
    if (n % 4 == 0) {
      const __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(total.x, total.y), __floats2bfloat162_rn(total.z, total.w)};
      if (at < n) *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(pairs);
    } else {
      const float values[4] = {total.x, total.y, total.z, total.w};
      for (int e = 0; e < 4; ++e)
        if (at + e < n) to[e] = __float2bfloat16(values[e]);
    }
  }
  cluster.sync();  // nobody leaves while another block still reads its sums
  (void)warps;
}

#ifdef VARIANTS
Plan forced{};
#endif

/// Shared memory of a plan.
int shared_of(const Plan& p, int m_tiles) {
  const int ring = p.warps_n * p.warps_k * p.stages * kChunk;
  const int x = m_tiles * 8 * (p.block_groups * kGroup * 2 + kRowPad) + p.block_groups * m_tiles * 8 * 4;
  const int parts = p.warps_k * m_tiles * 8 * (p.warps_n * kRows + kSumPad) * 4;
  return std::max(ring + x, parts);
}

Plan complete(Plan p, int m_tiles, int64_t k, int64_t n, int budget) {
  const int groups = static_cast<int>(k / kGroup), tiles = static_cast<int>((n + kRows - 1) / kRows);
  p.block_groups = (groups + p.cluster - 1) / p.cluster;
  p.warp_groups = (p.block_groups + p.warps_k - 1) / p.warps_k;
  p.blocks = (tiles + p.warps_n - 1) / p.warps_n * p.cluster;
  p.stages = std::min(p.warp_groups, kMostStages);
  while (p.stages > 1 && shared_of(p, m_tiles) > budget) --p.stages;
  p.shared = shared_of(p, m_tiles);
  return p;
}

/// The plan whose busiest multiprocessor has the fewest chunks. Clusters lie within 16 neighbouring
/// multiprocessors.
Plan plan_of(int m_tiles, int64_t k, int64_t n) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int64_t tiles = (n + kRows - 1) / kRows, groups = k / kGroup;
  Plan best{};
  int64_t least = INT64_MAX;
  for (int cluster = 1; cluster <= 8; cluster *= 2) {
    const int64_t clusters = std::max(1, multiprocessors / 16 * 16 / cluster);
    Plan p{};
    p.cluster = cluster;
    p.warps_n = static_cast<int>(std::min<int64_t>((tiles + clusters - 1) / clusters, most_warps(m_tiles)));
    const int64_t block_groups = (groups + cluster - 1) / cluster;
    p.warps_k = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(most_warps(m_tiles) / p.warps_n, block_groups)));
    p = complete(p, m_tiles, k, n, kMostShared);
    const int64_t waves = (p.blocks + clusters * cluster - 1) / (clusters * cluster);
    const int64_t cost = waves * p.warps_n * p.warps_k * p.warp_groups;
    if (p.shared <= kMostShared && cost < least) least = cost, best = p;
  }
  return best;
}

template <int kM>
void launch_with(const bf16* x, bf16* y, int64_t m, int64_t k, int64_t n, const void* prepared, cudaStream_t stream) {
  Plan plan = plan_of(kM, k, n);
#ifdef VARIANTS
  if (forced.cluster) plan = complete(forced, kM, k, n, forced.shared);
#endif
  cudaFuncSetAttribute(w4a16<kM>, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(plan.blocks), static_cast<unsigned>((m + kM * 8 - 1) / (kM * 8)));
  config.blockDim = dim3(static_cast<unsigned>(plan.warps_n * plan.warps_k * 32));
  config.dynamicSmemBytes = static_cast<size_t>(plan.shared);
  config.stream = stream;
  cudaLaunchAttribute cluster[1];
  cluster[0].id = cudaLaunchAttributeClusterDimension;
  cluster[0].val.clusterDim.x = static_cast<unsigned>(plan.cluster);
  cluster[0].val.clusterDim.y = cluster[0].val.clusterDim.z = 1;
  config.attrs = cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, w4a16<kM>, static_cast<const uint8_t*>(prepared), x, y, static_cast<int>(m), static_cast<int>(k),
                     static_cast<int>(n), plan);
}

extern "C" size_t prepared_bytes(int64_t /*m*/, int64_t k, int64_t n) {
  return static_cast<size_t>((n + kRows - 1) / kRows * (k / kGroup) * kChunk);
}

extern "C" void prepare(const uint8_t* w /*[n,k/2]*/, const bf16* scales /*[n,k/128]*/, int64_t /*m*/, int64_t k, int64_t n,
                        void* prepared, cudaStream_t stream) {
  const int64_t blocks = (n + kRows - 1) / kRows * (k / kGroup);
  shuffle<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(w, scales, n, k, static_cast<uint8_t*>(prepared));
}

extern "C" void launch(const bf16* x /*[m,k]*/, const uint8_t* /*w [n,k/2]*/, const bf16* /*scales [n,k/128]*/,
                       bf16* y /*[m,n]*/, int64_t m, int64_t k, int64_t n, const void* prepared, void* /*workspace*/,
                       cudaStream_t stream) {
  if (m <= 8) launch_with<1>(x, y, m, k, n, prepared, stream);
  else if (m <= 16) launch_with<2>(x, y, m, k, n, prepared, stream);
  else launch_with<4>(x, y, m, k, n, prepared, stream);
}
