// Rung 4: Hopper's copy engine, and products of a whole warp group.
//
// Changed     tiles come by TMA: one thread requests them, two tiles ahead. Four warps multiply 64 queries at
//             once with wgmma: queries and keys lie in shared memory, the weights in registers.
// Why         mma.sync reaches two thirds of Hopper's rate, and each warp of rung 3 loads every key and value
//             into registers.
// Prediction  420 to 480 TFLOP/s.
// Came        388 TFLOP/s at d 64, less than predicted.
//
// Shapes      q, k, v, o [h, n, d], fp16, row-major.
// Launch      128 threads per 64 queries; several blocks share a multiprocessor.
// Resources   90 registers at d 64, 138 at d 128; 42 or 83 KB of shared memory; no workspace.
// Cost        4 h n n d FLOPs; 8 h n d bytes.
// Divides     d is 64 or 128 (the problem says so); n anything.
// Source      FlashAttention-3, J. Shah et al. (2024). Needs sm_90a.
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

constexpr bool kCausal = false;  // causal_attention's rung 5 is this file with true

template <int kDim>
struct Plan {
  static constexpr int kQueries = 64, kKeys = 64, kStages = 2, kPanels = kDim / 64, kThreads = 128;
  static constexpr int kBox = 64 * 128;          // [B]: 64 rows of 64 columns
  static constexpr int kKeyPanel = kKeys * 128;  // [B]
  static constexpr int kBytesQ = kPanels * kBox, kBytesK = kPanels * kKeyPanel;
  static constexpr int kShared = kBytesQ + kStages * 2 * kBytesK + 1024;
};

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}
__device__ void arrive_and_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes)
               : "memory");
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
#define LIST64                                                                             \
  LIST32                                                                                   \
      ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/// Scores: 64 queries x 64 keys, 16 deep; queries and keys lie in shared memory, both along the depth.
__device__ void multiply_scores(float (&d)[32], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LIST32 "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16)
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
struct Softmax {
  float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};

  /// Scores become weights; `shrink`: what earlier weights are to be multiplied by.
  __device__ void take(float (&s)[32], float factor, float (&shrink)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = maximum[half];
#pragma unroll
      for (int j = 0; j < 8; ++j) top = fmaxf(top, fmaxf(s[j * 4 + half * 2], s[j * 4 + half * 2 + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
      const float zero = top == -INFINITY ? 0.0f : top * factor;  // no key of this row is visible yet
      shrink[half] = power_of_two(maximum[half] * factor - zero);
      maximum[half] = top;
      float here = 0;
#pragma unroll
      for (int j = 0; j < 8; ++j)
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
__device__ void mask(float (&s)[32], int first_key, int keys, int query) {
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first_key + j * 8 + threadIdx.x % 4 * 2 + i % 2;
      if (key >= keys || (kCausal && key > query + i / 2 * 8)) s[j * 4 + i] = -INFINITY;
    }
}
__device__ void to_weights(uint32_t (&p)[16], const float (&s)[32]) {
#pragma unroll
  for (int j = 0; j < 16; ++j) p[j] = halves(s[j * 2], s[j * 2 + 1]);
}

template <int kDim>
__global__ void __launch_bounds__(Plan<kDim>::kThreads)
    attention(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
              const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_o, int heads,
              int n, float factor) {
  using P = Plan<kDim>;
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full_q, full_k[P::kStages], full_v[P::kStages];
  uint8_t* const queries = shared + (1024 - address(shared) % 1024) % 1024;
  const auto k_tile = [&](int stage) { return queries + P::kBytesQ + stage * 2 * P::kBytesK; };
  const auto v_tile = [&](int stage) { return k_tile(stage) + P::kBytesK; };
  const int blocks = (n + P::kQueries - 1) / P::kQueries;
  // causal: those with the most keys first
  const int head = kCausal ? blockIdx.x % heads : blockIdx.x / blocks;
  const int first = (kCausal ? blocks - 1 - blockIdx.x / heads : blockIdx.x % blocks) * P::kQueries;
  const int keys = kCausal && first + P::kQueries < n ? first + P::kQueries : n,
            tiles = (keys + P::kKeys - 1) / P::kKeys;
  const auto ask = [&](const CUtensorMap& map, uint8_t* to, int tile, uint64_t* barrier) {
    arrive_and_expect(barrier, P::kBytesK);
    for (int p = 0; p < P::kPanels; ++p)
      load(to + p * P::kKeyPanel, &map, p * 64, tile * P::kKeys, head, barrier);
  };
  if (threadIdx.x == 0) {
    init(&full_q, 1);
    for (int i = 0; i < P::kStages; ++i) init(full_k + i, 1), init(full_v + i, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    arrive_and_expect(&full_q, P::kBytesQ);
    for (int p = 0; p < P::kPanels; ++p) load(queries + p * P::kBox, &map_q, p * 64, first, head, &full_q);
    for (int i = 0; i < P::kStages && i < tiles; ++i)
      ask(map_k, k_tile(i), i, full_k + i), ask(map_v, v_tile(i), i, full_v + i);
  }
  __syncthreads();

  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;  // and the one 8 below
  float s[32], o[kDim / 2];
  uint32_t p[16];
  Softmax softmax;
  float shrink[2];
  int stage = 0, phase = 0;
  wait(&full_q, 0);
  for (int tile = 0; tile < tiles; ++tile) {
    wait(full_k + stage, phase);
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i)
      multiply_scores(s, matrix(queries + i / 4 * P::kBox + i % 4 * 32, 0, 1024),
                      matrix(k_tile(stage) + i / 4 * P::kKeyPanel + i % 4 * 32, 0, 1024), i > 0);
    commit();
    wait_for_products<0>();
    if ((tile + 1) * P::kKeys > n || (kCausal && (tile + 1) * P::kKeys > first + 1))
      mask(s, tile * P::kKeys, n, first + row);
    softmax.take(s, factor, shrink);
    if (tile > 0)
#pragma unroll
      for (int i = 0; i < kDim / 2; ++i) o[i] *= shrink[i / 2 % 2];
    to_weights(p, s);
    wait(full_v + stage, phase);
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < P::kKeys / 16; ++i)
      multiply_values(o, p + i * 4, matrix(v_tile(stage) + i * 2048, P::kKeyPanel, 1024), tile > 0 || i > 0);
    commit();
    wait_for_products<0>();
    __syncthreads();  // all four warps have used both tiles
    if (threadIdx.x == 0 && tile + P::kStages < tiles) {
      ask(map_k, k_tile(stage), tile + P::kStages, full_k + stage);
      ask(map_v, v_tile(stage), tile + P::kStages, full_v + stage);
    }
    if (++stage == P::kStages) stage = 0, phase ^= 1;
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = softmax.sum[half];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    const float scale = 1 / sum;
#pragma unroll
    for (int c = 0; c < kDim / 8; ++c) {  // a lane's pair of each eight columns
      const int at = row + half * 8;
      *reinterpret_cast<uint32_t*>(queries + c / 8 * P::kBox + at * 128 + (c % 8 ^ at % 8) * 16 +
                                   threadIdx.x % 4 * 4) =
          halves(o[c * 4 + half * 2] * scale, o[c * 4 + half * 2 + 1] * scale);
    }
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int c = 0; c < P::kPanels; ++c) store(&map_o, queries + c * P::kBox, c * 64, first, head);
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
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

template <int kDim>
void start(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n,
           cudaStream_t stream) {
  using P = Plan<kDim>;
  const int64_t tiles = h * ((n + P::kQueries - 1) / P::kQueries);
  cudaFuncSetAttribute(attention<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kShared);
  attention<kDim><<<static_cast<unsigned>(tiles), P::kThreads, P::kShared, stream>>>(
      map_of(q, h, n, kDim, 64), map_of(k, h, n, kDim, P::kKeys), map_of(v, h, n, kDim, P::kKeys),
      map_of(o, h, n, kDim, 64), static_cast<int>(h), static_cast<int>(n),
      static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim))));
}

extern "C" void launch(const __half* q /*[h,n,d]*/, const __half* k /*[h,n,d]*/, const __half* v /*[h,n,d]*/,
                       __half* o /*[h,n,d]*/, int64_t h, int64_t n, int64_t d, void* /*workspace*/,
                       cudaStream_t stream) {
  if (d == 64)
    start<64>(q, k, v, o, h, n, stream);
  else
    start<128>(q, k, v, o, h, n, stream);
}
