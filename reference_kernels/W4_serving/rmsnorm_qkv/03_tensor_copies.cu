// Rung 3: tensor copies keep the weights coming; warps that compute never ask for them.
//
// Changed     a warp of its own asks for weights: 16 rows of 512 columns make a stage of a ring in shared
//             memory, fetched by two instructions (cp.async.bulk.tensor), and mbarriers say when a stage is
//             full and when it is empty. Eight warps multiply what is there. Rows and columns behind the end
//             arrive as zeros.
// Why         in rung 2 a thread's loads wait for its products: when a warp stops at the end of a tile, so
//             do its loads. Here the ring is filled from the first cycle on, also while x is prepared.
// Prediction  1.05x rung 2.
// Came        69.1 us on an H100, 2438 GB/s, 1.05 times the rung before. 105 % of the native baseline.
//
// Shapes      x [m, k], g [k], w [n, k], y [m, n], bf16, row-major.
// Launch      <<<(blocks, ceil(m / 16)), 288>>>: clusters of 2 blocks; a cluster takes every so-many-th 16
//             rows of w.
// Resources   at most 224 registers; up to 227 KB of shared memory, one block a multiprocessor.
// Cost        2 * m * n * k FLOPs; 2 * n * k bytes for each 16 rows of x.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so), k <= 8192; a deeper k takes the kernels of
//             rung 1.
// Source      producer and consumers around a ring of mbarriers: CUTLASS 3 (NVIDIA, 2022). Needs a GPU of
//             compute capability 9.0.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace cg = cooperative_groups;

constexpr int kWarps = 8, kThreads = 32 * kWarps;  // that multiply; one warp more fetches
constexpr int kCluster = 2;                        // blocks that share k
constexpr int kRows = 16;                          // of w in a tile, and of x in a slab
constexpr int kChunk = 32;     // columns that a warp multiplies at a time: 16 bytes of each row a thread
constexpr int kSegment = 512;  // columns of a stage
constexpr int kBox = 256;      // columns that one instruction fetches, of kRows rows
constexpr int kStageBytes = kRows * kSegment * 2, kBoxBytes = kRows * kBox * 2;
constexpr int kMostStages = 12, kMostShared = 227 * 1024;
constexpr int kMostTiles = 10;    // of a block
constexpr int kMostShare = 4096;  // columns of a block
constexpr int kBatch = 16;        // vectors of x that a lane asks for at a time
constexpr int kPad = 32;          // columns: rows of x then begin 64 bytes further in the banks

// ---- numbers ----------------------------------------------------------------------------------------------
/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ unsigned product(unsigned a, unsigned b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low(a) * low(b), high(a) * high(b));
  return reinterpret_cast<const unsigned&>(both);
}
__device__ float squares(unsigned word) { return low(word) * low(word) + high(word) * high(word); }

/// d += a b: a has 16 rows and 16 columns, b has 8 columns.
__device__ void multiply(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                         unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// ---- a ring: an mbarrier's phase ends with its last arrival, when the bytes it expects are there
// -----------
__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals) : "memory");
}
__device__ void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}
__device__ void arrive_and_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes)
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
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], "
      "[%2];" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "r"(column), "r"(row)
      : "memory");
}
/// The warps that multiply meet.
__device__ void meet() { asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory"); }

/// Where a block's columns lie.
struct Share {
  int first, count, pitch;  // columns; `pitch` of a row of x in shared memory
};
__host__ __device__ Share share_of(int64_t k, int rank) {
  const int chunks = static_cast<int>((k + kChunk - 1) / kChunk), own = (chunks + kCluster - 1) / kCluster;
  const int first = rank * own * kChunk, left = static_cast<int>(k) - first;
  return {first,
          left < 0              ? 0
          : left < own * kChunk ? left
                                : own * kChunk,
          own * kChunk / (2 * kPad) * (2 * kPad) + 2 * kPad + kPad};
}

/// x * g of this block's columns to shared memory, zeros behind the end, and the sums of their squares. A
/// warp takes a row; a lane asks for kBatch vectors before it uses one.
__device__ void prepare(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ g, int64_t k,
                        int rows, const Share& share, __nv_bfloat16* xg, float* squares_of) {
  const int lane = threadIdx.x % 32;
  const int vectors = (share.count + kChunk - 1) / kChunk * kChunk / 8;  // with zeros to a whole chunk
  for (int row = threadIdx.x / 32; row < kRows; row += kWarps) {
    float sum = 0;
    for (int first = lane; first < vectors; first += 32 * kBatch) {
      uint4 v[kBatch], factor[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int c = (first + 32 * i) * 8;
        const bool there = row < rows && c < share.count;
        v[i] =
            there ? *reinterpret_cast<const uint4*>(x + row * k + share.first + c) : make_uint4(0, 0, 0, 0);
        factor[i] = there ? *reinterpret_cast<const uint4*>(g + share.first + c) : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        sum += squares(v[i].x) + squares(v[i].y) + squares(v[i].z) + squares(v[i].w);
        if (first + 32 * i < vectors)
          *reinterpret_cast<uint4*>(xg + row * share.pitch + (first + 32 * i) * 8) =
              make_uint4(product(v[i].x, factor[i].x), product(v[i].y, factor[i].y),
                         product(v[i].z, factor[i].z), product(v[i].w, factor[i].w));
      }
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) squares_of[row] = sum;
  }
}

/// What a block keeps in shared memory besides x and the ring.
template <int kHalves>
struct Kept {
  static constexpr int kResults = kRows * 8 * kHalves;  // of a tile
  float partial[2][kWarps][kResults], sums[kMostTiles][kResults], squares_of[kRows];
  uint64_t full[kMostStages], empty[kMostStages];
};

/// kHalves: eights of x's rows.
template <int kHalves>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads + 32, 1)
    rmsnorm_qkv(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ g,
                const __grid_constant__ CUtensorMap weights, __nv_bfloat16* __restrict__ y, float eps,
                int64_t m, int64_t k, int64_t n, int stages) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kResults = Kept<kHalves>::kResults;
  extern __shared__ __align__(128) uint4 shared[];
  __shared__ Kept<kHalves> kept;
  auto& [partial, sums, squares_of, full, empty] = kept;
  cg::cluster_group cluster = cg::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank());
  const Share share = share_of(k, rank);
  auto* const ring = reinterpret_cast<uint8_t*>(shared);
  auto* const xg = reinterpret_cast<__nv_bfloat16*>(ring + stages * kStageBytes);
  const int64_t clusters = gridDim.x / kCluster, first_tile = blockIdx.x / kCluster,
                tiles = (n + kRows - 1) / kRows;
  const int64_t slab = static_cast<int64_t>(blockIdx.y) * kRows;
  const int rows = static_cast<int>(m - slab < kRows ? m - slab : kRows);
  const int own_tiles = static_cast<int>((tiles - first_tile + clusters - 1) / clusters);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 8;
  const int segments = (share.count + kSegment - 1) / kSegment;
  int stage = 0, phase = 0;
  const auto advance = [&] {
    if (++stage == stages) stage = 0, phase ^= 1;
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) init(full + i, 1), init(empty + i, kWarps);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // the copy engine sees them, too
  }
  __syncthreads();

  if (warp == kWarps) {  // one lane fetches
    for (int tile = 0; lane == 0 && tile < own_tiles; ++tile)
      for (int segment = 0; segment < segments; ++segment, advance()) {
        wait(empty + stage, phase ^ 1);  // the first time around, the phase "before" the first one is over
        arrive_and_expect(full + stage, kStageBytes);
        for (int box = 0; box < kSegment / kBox; ++box)
          load(ring + stage * kStageBytes + box * kBoxBytes, &weights,
               share.first + segment * kSegment + box * kBox,
               static_cast<int>(first_tile + tile * clusters) * kRows, full + stage);
      }
    __syncwarp();
  } else {
    prepare(x + slab * k, g, k, rows, share, xg, squares_of);
    meet();
  }
  for (int tile = 0; warp < kWarps && tile < own_tiles; ++tile) {
    float d[kHalves][4] = {};
    for (int segment = 0; segment < segments; ++segment, advance()) {
      wait(full + stage, phase);
#pragma unroll
      for (int i = 0; i < kSegment / kChunk / kWarps; ++i) {
        const int in_stage = (warp + i * kWarps) * kChunk, c = segment * kSegment + in_stage + column;
        if (c - column >= share.count) continue;  // the whole warp: columns of the other block
        const uint8_t* const rows_of_w = ring + stage * kStageBytes + in_stage / kBox * kBoxBytes +
                                         row * kBox * 2 + (in_stage % kBox + column) * 2;
        const uint4 above = *reinterpret_cast<const uint4*>(rows_of_w);
        const uint4 below = *reinterpret_cast<const uint4*>(rows_of_w + 8 * kBox * 2);
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
          const uint4 b = *reinterpret_cast<const uint4*>(xg + (row + 8 * half) * share.pitch + c);
          multiply(d[half], above.x, below.x, above.y, below.y, b.x, b.y);
          multiply(d[half], above.z, below.z, above.w, below.w, b.z, b.w);
        }
      }
      __syncwarp();
      if (lane == 0) arrive(empty + stage);
    }
    float* const own = partial[tile % 2][warp];  // [row of w][row of x]
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      const int at = half * 8 + lane % 4 * 2;
      own[row * 8 * kHalves + at] = d[half][0], own[row * 8 * kHalves + at + 1] = d[half][1];
      own[(row + 8) * 8 * kHalves + at] = d[half][2], own[(row + 8) * 8 * kHalves + at + 1] = d[half][3];
    }
    meet();  // all warps' sums are there; those of the tile before have been used
    for (int i = threadIdx.x; i < kResults; i += kThreads) {
      float sum = 0;
      for (int other = 0; other < kWarps; ++other) sum += partial[tile % 2][other][i];
      sums[tile][i] = sum;
    }
  }

  cluster.sync();  // the sums of all blocks are complete
  for (int tile = rank; tile < own_tiles; tile += kCluster)
    for (int i = threadIdx.x; i < kResults; i += kThreads + 32) {
      const int of_w = i % kRows, of_x = i / kRows;  // neighbours write neighbours
      const int64_t j = (first_tile + tile * clusters) * kRows + of_w;
      float sum = 0, square = 0;
      for (int b = 0; b < kCluster; ++b) {
        sum += cluster.map_shared_rank(sums[tile], b)[of_w * 8 * kHalves + of_x];
        square += cluster.map_shared_rank(squares_of, b)[of_x];
      }
      if (of_x < rows && j < n)
        y[(slab + of_x) * n + j] = __float2bfloat16(sum * rsqrtf(square / static_cast<float>(k) + eps));
    }
  cluster.sync();  // nobody leaves while another block reads its sums
#endif
}

// ---- a deeper k: rung 1 -----------------------------------------------------------------------------------
__global__ void normalise(const __nv_bfloat16* x, const __nv_bfloat16* g, __nv_bfloat16* normed, float eps,
                          int64_t k) {
  __shared__ float partial[kWarps];
  const int64_t start = blockIdx.x * k;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < k; i += kThreads)
    sum += __bfloat162float(x[start + i]) * __bfloat162float(x[start + i]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += partial[warp];
  const float scale = rsqrtf(sum / static_cast<float>(k) + eps);
  for (int64_t i = threadIdx.x; i < k; i += kThreads)
    normed[start + i] = __float2bfloat16(__bfloat162float(x[start + i]) * scale * __bfloat162float(g[i]));
}
/// A warp for each result.
__global__ void dot_products(const __nv_bfloat16* a, const __nv_bfloat16* w, __nv_bfloat16* y, int64_t k,
                             int64_t n) {
  const int64_t row = blockIdx.y, column = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (column >= n) return;
  float sum = 0;
  for (int64_t i = threadIdx.x % 32; i < k; i += 32)
    sum += __bfloat162float(a[row * k + i]) * __bfloat162float(w[column * k + i]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) y[row * n + column] = __float2bfloat16(sum);
}

/// The weights as the copy engine sees them: boxes of kBox columns and kRows rows.
CUtensorMap map_of(const __nv_bfloat16* w, int64_t rows, int64_t columns) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[] = {kBox, kRows}, step[] = {1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(w), size, pitch, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the weights");
  return map;
}

bool fits(int64_t k) { return share_of(k, 0).count <= kMostShare; }
extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t /*n*/) {
  return fits(k) ? 0 : static_cast<size_t>(m * k) * sizeof(__nv_bfloat16);
}

extern "C" void launch(const __nv_bfloat16* x /*[m,k]*/, const __nv_bfloat16* g /*[k]*/,
                       const __nv_bfloat16* w /*[n,k]*/, __nv_bfloat16* y /*[m,n]*/, float eps, int64_t m,
                       int64_t k, int64_t n, void* workspace, cudaStream_t stream) {
  if (!fits(k)) {
    auto* const normed = static_cast<__nv_bfloat16*>(workspace);
    normalise<<<static_cast<unsigned>(m), kThreads, 0, stream>>>(x, g, normed, eps, k);
    dot_products<<<dim3(static_cast<unsigned>((n + kWarps - 1) / kWarps), static_cast<unsigned>(m)), kThreads,
                   0, stream>>>(normed, w, y, k, n);
    return;
  }
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const auto kernel = m <= 8 ? rmsnorm_qkv<1> : rmsnorm_qkv<2>;
  const int bytes_of_x = kRows * share_of(k, 0).pitch * static_cast<int>(sizeof(__nv_bfloat16));
  const int room = kMostShared - static_cast<int>(sizeof(Kept<2>)) - bytes_of_x;
  const int stages = std::min(room / kStageBytes, kMostStages);
  const int shared_bytes = stages * kStageBytes + bytes_of_x;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes_of_x + room);
  // Clusters that run at once, as many tiles for each: 640 tiles are 10 for each of 64 clusters, not 9 or 10
  // for 66.
  const int64_t tiles = (n + kRows - 1) / kRows, most = multiprocessors / kCluster;
  const int64_t for_each = std::min<int64_t>((tiles + most - 1) / most, kMostTiles),
                clusters = (tiles + for_each - 1) / for_each;
  const dim3 grid(static_cast<unsigned>(clusters * kCluster), static_cast<unsigned>((m + kRows - 1) / kRows));
  kernel<<<grid, kThreads + 32, static_cast<size_t>(shared_bytes), stream>>>(x, g, map_of(w, n, k), y, eps, m,
                                                                             k, n, stages);
}
