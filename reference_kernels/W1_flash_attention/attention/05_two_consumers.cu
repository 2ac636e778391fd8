// Rung 5: one group multiplies while the other one exponentiates.
//
// Changed     a producer, which only requests tiles from the copy engine, and two consumers with 64 queries
//             each. Named barriers let them take turns: the products of one run during the softmax of the
//             other. Registers move from the producer to the consumers. Results leave by TMA.
// Why         in rung 4 a group multiplies and exponentiates one after the other.
// Prediction  570 to 620 TFLOP/s at d 128; less at d 64, where each product has half as much work per score.
// Came        387 TFLOP/s at d 64, no more than rung 4: while one of the several blocks of a
//             multiprocessor waits for its softmax there, another one multiplies, too.
//
// Shapes      q, k, v, o [h, n, d], fp16, row-major.
// Launch      384 threads per 128 queries, one block per multiprocessor at a time.
// Resources   240 registers per consumer, 24 a producer; 81 or 161 KB of shared memory.
// Cost        4 h n n d FLOPs; 8 h n d bytes.
// Divides     d is 64 or 128 (the problem says so); n anything.
// Source      "ping-pong" of FlashAttention-3, J. Shah et al. (2024). Needs sm_90a.
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

constexpr bool kCausal = false;  // causal_attention's rung 6 is this file with true

template <int kDim>
struct Plan {
  static constexpr int kConsumers = 2, kQueries = 64 * kConsumers, kKeys = 128, kStages = 2,
                       kPanels = kDim / 64;
  static constexpr int kThreads = 128 * (1 + kConsumers);
  static constexpr int kBox = 64 * 128;          // [B]: 64 rows of 64 columns
  static constexpr int kKeyPanel = kKeys * 128;  // [B]
  static constexpr int kBytesQ = kConsumers * kPanels * kBox, kBytesK = kPanels * kKeyPanel;
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

/// Scores: 64 queries x 128 keys, 16 deep; queries and keys lie in shared memory, both along the depth.
__device__ void multiply_scores(float (&d)[64], uint64_t q, uint64_t k, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LIST64 "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16), D16(32), D16(48)
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
  __device__ void take(float (&s)[64], float factor, float (&shrink)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = maximum[half];
#pragma unroll
      for (int j = 0; j < 16; ++j) top = fmaxf(top, fmaxf(s[j * 4 + half * 2], s[j * 4 + half * 2 + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
      const float zero = top == -INFINITY ? 0.0f : top * factor;  // no key of this row is visible yet
      shrink[half] = power_of_two(maximum[half] * factor - zero);
      maximum[half] = top;
      float here = 0;
#pragma unroll
      for (int j = 0; j < 16; ++j)
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
__device__ void mask(float (&s)[64], int first_key, int keys, int query) {
#pragma unroll
  for (int j = 0; j < 16; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first_key + j * 8 + threadIdx.x % 4 * 2 + i % 2;
      if (key >= keys || (kCausal && key > query + i / 2 * 8)) s[j * 4 + i] = -INFINITY;
    }
}
__device__ void to_weights(uint32_t (&p)[32], const float (&s)[64]) {
#pragma unroll
  for (int j = 0; j < 32; ++j) p[j] = halves(s[j * 2], s[j * 2 + 1]);
}

template <int kDim>
__global__ void __launch_bounds__(Plan<kDim>::kThreads, 1)
    attention(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
              const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_o, int heads,
              int n, float factor) {
  using P = Plan<kDim>;
  extern __shared__ uint8_t shared[];
  __shared__ uint64_t full_q, full_k[P::kStages], empty_k[P::kStages], full_v[P::kStages],
      empty_v[P::kStages];
  uint8_t* const queries = shared + (1024 - address(shared) % 1024) % 1024;
  const auto k_tile = [&](int stage) { return queries + P::kBytesQ + stage * 2 * P::kBytesK; };
  const auto v_tile = [&](int stage) { return k_tile(stage) + P::kBytesK; };
  if (threadIdx.x == 0) {
    init(&full_q, 1);
    for (int i = 0; i < P::kStages; ++i) {
      init(full_k + i, 1), init(full_v + i, 1);
      init(empty_k + i, P::kConsumers), init(empty_v + i, P::kConsumers);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  const int blocks = (n + P::kQueries - 1) / P::kQueries;
  const auto place_of = [&](int tile, int& head, int& first) {  // causal: those with the most keys first
    if (kCausal)
      head = tile % heads, first = (blocks - 1 - tile / heads) * P::kQueries;
    else
      head = tile / blocks, first = tile % blocks * P::kQueries;
  };
  const auto key_tiles = [&](int first) {
    const int keys = kCausal && first + P::kQueries < n ? first + P::kQueries : n;
    return (keys + P::kKeys - 1) / P::kKeys;
  };
  const int group = threadIdx.x / 128;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x != 0) return;
    int stage = 0, phase = 0, head, first;
    place_of(blockIdx.x, head, first);
    arrive_and_expect(&full_q, P::kBytesQ);
    for (int c = 0; c < P::kConsumers; ++c)
      for (int p = 0; p < P::kPanels; ++p)
        load(queries + (c * P::kPanels + p) * P::kBox, &map_q, p * 64, first + c * 64, head, &full_q);
    for (int j = key_tiles(first) - 1; j >= 0; --j) {
      wait(empty_k + stage, phase ^ 1);
      arrive_and_expect(full_k + stage, P::kBytesK);
      for (int p = 0; p < P::kPanels; ++p)
        load(k_tile(stage) + p * P::kKeyPanel, &map_k, p * 64, j * P::kKeys, head, full_k + stage);
      wait(empty_v + stage, phase ^ 1);
      arrive_and_expect(full_v + stage, P::kBytesK);
      for (int p = 0; p < P::kPanels; ++p)
        load(v_tile(stage) + p * P::kKeyPanel, &map_v, p * 64, j * P::kKeys, head, full_v + stage);
      if (++stage == P::kStages) stage = 0, phase ^= 1;
    }
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  const int consumer = group - 1, me = threadIdx.x % 128;
  uint8_t* const mine = queries + consumer * P::kPanels * P::kBox;
  const int row = me / 32 * 16 + me % 32 / 4;  // of the group's 64, and the one 8 below
  const auto my_turn = [&] { asm volatile("bar.sync %0, 256;" ::"r"(2 + consumer) : "memory"); };
  const auto your_turn = [&] { asm volatile("bar.arrive %0, 256;" ::"r"(3 - consumer) : "memory"); };
  if (consumer == 1) your_turn();  // the first group begins
  int stage = 0, phase = 0;

  float s[64], o[kDim / 2];
  uint32_t p[32];
  const auto ask_for_scores = [&](int at) {
    begin_multiplying();
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i)
      multiply_scores(s, matrix(mine + i / 4 * P::kBox + i % 4 * 32, 0, 1024),
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
  {
    int head, first;
    place_of(blockIdx.x, head, first);
    const int query = first + consumer * 64 + row;
    Softmax softmax;
    float shrink[2];
    wait(&full_q, 0);
    bool begun = false;
    for (int j = key_tiles(first) - 1; j >= 0; --j, begun = true) {
      wait(full_k + stage, phase);
      my_turn();
      ask_for_scores(stage);
      your_turn();
      wait_for_products<0>();
      if (me == 0) arrive(empty_k + stage);
      if ((j + 1) * P::kKeys > n || (kCausal && (j + 1) * P::kKeys > first + consumer * 64 + 1))
        mask(s, j * P::kKeys, n, query);
      softmax.take(s, factor, shrink);
      if (begun)
#pragma unroll
        for (int i = 0; i < kDim / 2; ++i) o[i] *= shrink[i / 2 % 2];
      to_weights(p, s);
      wait(full_v + stage, phase);
      ask_for_values(stage, begun);
      wait_for_products<0>();
      if (me == 0) arrive(empty_v + stage);
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
        *reinterpret_cast<uint32_t*>(mine + c / 8 * P::kBox + at * 128 + (c % 8 ^ at % 8) * 16 + me % 4 * 4) =
            halves(o[c * 4 + half * 2] * scale, o[c * 4 + half * 2 + 1] * scale);
      }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(4 + consumer) : "memory");
    if (me == 0) {
      for (int c = 0; c < P::kPanels; ++c)
        store(&map_o, mine + c * P::kBox, c * 64, first + consumer * 64, head);
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
  }
  if (consumer == 0) my_turn();  // takes the other group's last arrival
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
