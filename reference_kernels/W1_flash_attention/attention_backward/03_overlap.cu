// Rung 3: the next scores are computed while dq leaves.
//
// Changed     a group asks for the scores of its next tile as soon as it has asked for dq and dk of this one.
//             While those three run it carries dq to memory; while the next dout * v runs it takes the
//             exponentials.
// Why         in rung 2 a group's own products stand still while it takes exponentials, writes gradients
//             and waits for dq; the other group waits with it at the barrier that both pass once a tile.
// Prediction  1.1x rung 2.
// Came        399 TFLOP/s on an H100: 0.96x rung 2. At d 64 the limit is shared memory: per tile of 128 x 128
//             the products take 2560 cycles of the tensor cores, but what they read, with the gradients and
//             dq on their way, takes about 2900 at 128 bytes a cycle. Overlap cannot win there, and costs
//             registers.
//
// Shapes      q, o, dout, dq [h, n, d], k, v, dk, dv [hk, n, d], bf16, row-major; lse [h, n], fp32.
// Launch      three kernels: row sums of dout * o; 384 threads per 128 keys of a head of k; dq to bf16.
// Resources   240 registers per consumer, 24 a producer; 196 KB of shared memory; workspace 4 h n d bytes.
// Cost        10 h n n d FLOPs; 8 (h + hk) n d bytes, and dq's sums, which live in the L2 cache.
// Divides     d is 64 or 128 and hk divides h (the problem says so); n anything.
// Source      FlashAttention-3, J. Shah et al. (2024), section on the backward pass. Needs sm_90a.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

using bf16 = __nv_bfloat16;

template <int kDim>
struct Plan {
  static constexpr int kConsumers = 2, kKeys = 64 * kConsumers, kQueries = kDim == 64 ? 128 : 64, kStages = 2;
  static constexpr int kPanels = kDim / 64;  // of 64 columns
  static constexpr int kThreads = 128 * (1 + kConsumers);
  static constexpr int kKeyPanel = kKeys * 128;       // [B]
  static constexpr int kQueryPanel = kQueries * 128;  // [B]
  static constexpr int kBytesK = kPanels * kKeyPanel, kBytesQ = kPanels * kQueryPanel;
  static constexpr int kBytesS = kKeys * kQueries * 2;    // gradients of the scores
  static constexpr int kBytesSums = kQueries * kDim * 4;  // a tile of dq; 64 x 64 of it a consumer
  static constexpr int kShared = 2 * kBytesK + kStages * 2 * kBytesQ + 2 * kBytesS + kBytesSums + 1024;
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
__device__ void load(void* to, const float* from, int bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          address(to)),
      "l"(from), "r"(bytes), "r"(address(barrier))
      : "memory");
}
/// Adds floats of shared memory to those in global memory.
__device__ void add_to(float* to, const void* from, int bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
               "r"(address(from)), "r"(bytes)
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
#define LIST64                                                                         \
  LIST32                                                                               \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/// 64 keys x 64 or 128 queries, 16 deep; both operands lie in shared memory, along the depth.
__device__ void multiply_turned(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LIST32 "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ void multiply_turned(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LIST64 "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : D16(0), D16(16), D16(32), D16(48)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
/// Added to 64 keys x 64 or 128 columns, 16 queries deep; the left operand comes from registers.
__device__ void multiply_gradient(float (&d)[32], const uint32_t* a, uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LIST32
               "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : D16(0), D16(16)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ void multiply_gradient(float (&d)[64], const uint32_t* a, uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LIST64
               "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : D16(0), D16(16), D16(32), D16(48)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
/// dq: 64 queries x 64 columns, 16 keys deep; both operands lie in shared memory, across the depth.
__device__ void multiply_dq(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LIST32 "}, %32, %33, p, 1, 1, 1, 1;\n}"
      : D16(0), D16(16)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
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

/// What the main kernel needs of each query, for rows to the end of the last tile: lse * log2(e) and delta,
/// the sum over a row of dout * o. Rows that do not exist get lse = inf: their weights are 0. dq's sums
/// become 0. One warp a row.
__global__ void prepare_rows(const bf16* o, const bf16* dout, const float* lse, float* scaled_lse,
                             float* delta, float* sums, int64_t rows, int n, int padded, int dim) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (at >= rows) return;
  const int64_t head = at / padded, query = at % padded;
  const int lane = threadIdx.x % 32;
  float sum = 0;
  for (int x = lane; x < dim; x += 32) {
    if (query < n) {
      const int64_t place = (head * n + query) * dim + x;
      sum += __bfloat162float(o[place]) * __bfloat162float(dout[place]);
    }
    sums[at * dim + x] = 0;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == 0) {
    scaled_lse[at] = query < n ? lse[head * n + query] * static_cast<float>(M_LOG2E) : INFINITY;
    delta[at] = sum;
  }
}

/// `heads`: of q, for each head of k; the block's queries are the tiles of all of them.
template <int kDim>
__global__ void __launch_bounds__(Plan<kDim>::kThreads, 1)
    attention_backward(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
                       const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_do,
                       const float* scaled_lse, const float* delta, float* sums, bf16* dk, bf16* dv, int n,
                       int heads, float factor, float scale) {
  using P = Plan<kDim>;
  extern __shared__ uint8_t shared[];
  __shared__ __align__(128) float lse_of[P::kStages][P::kQueries], delta_of[P::kStages][P::kQueries];
  __shared__ uint64_t full_kv, full_q[P::kStages], full_do[P::kStages], empty[P::kStages];
  uint8_t* const keys = shared + (1024 - address(shared) % 1024) % 1024;
  uint8_t* const values = keys + P::kBytesK;
  const auto q_tile = [&](int stage) { return values + P::kBytesK + stage * 2 * P::kBytesQ; };
  const auto do_tile = [&](int stage) { return q_tile(stage) + P::kBytesQ; };
  uint8_t* const gradients = q_tile(P::kStages);
  uint8_t* const staging = gradients + 2 * P::kBytesS;
  if (threadIdx.x == 0) {
    init(&full_kv, 1);
    for (int i = 0; i < P::kStages; ++i)
      init(full_q + i, 1), init(full_do + i, 1), init(empty + i, 128 * P::kConsumers);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  const int head = blockIdx.y, first = blockIdx.x * P::kKeys;
  const int head_tiles = (n + P::kQueries - 1) / P::kQueries, tiles = heads * head_tiles;
  // Blocks begin at different queries, so that they do not add to the same tile of dq at the same time.
  const auto tile_of = [&](int i) { return (i + static_cast<int>(blockIdx.x)) % tiles; };
  const int group = threadIdx.x / 128;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x != 0) return;
    arrive_and_expect(&full_kv, 2 * P::kBytesK);
    for (int p = 0; p < P::kPanels; ++p) {
      load(keys + p * P::kKeyPanel, &map_k, p * 64, first, head, &full_kv);
      load(values + p * P::kKeyPanel, &map_v, p * 64, first, head, &full_kv);
    }
    for (int i = 0, stage = 0, phase = 0; i < tiles; ++i) {
      const int query = tile_of(i) % head_tiles * P::kQueries,
                head_q = head * heads + tile_of(i) / head_tiles;
      const int64_t row = (static_cast<int64_t>(head) * tiles + tile_of(i)) * P::kQueries;
      wait(empty + stage, phase ^ 1);
      arrive_and_expect(full_q + stage, P::kBytesQ + P::kQueries * 4);
      for (int p = 0; p < P::kPanels; ++p)
        load(q_tile(stage) + p * P::kQueryPanel, &map_q, p * 64, query, head_q, full_q + stage);
      load(lse_of[stage], scaled_lse + row, P::kQueries * 4, full_q + stage);
      arrive_and_expect(full_do + stage, P::kBytesQ + P::kQueries * 4);
      for (int p = 0; p < P::kPanels; ++p)
        load(do_tile(stage) + p * P::kQueryPanel, &map_do, p * 64, query, head_q, full_do + stage);
      load(delta_of[stage], delta + row, P::kQueries * 4, full_do + stage);
      if (++stage == P::kStages) stage = 0, phase ^= 1;
    }
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  const int consumer = group - 1, me = threadIdx.x % 128, column = me % 4 * 2;
  const int row = me / 32 * 16 + me % 32 / 4;  // of the group's 64 keys, and the one 8 below
  uint8_t* const my_staging = staging + consumer * (P::kBytesSums / 2);
  constexpr int kQ = P::kQueries;
  float s[kQ / 2], dp[kQ / 2], my_dk[kDim / 2] = {}, my_dv[kDim / 2] = {}, dq[32];
  uint32_t p[kQ / 4], g[kQ / 4];  // weights and the gradients of the scores, in pairs of queries
  const auto ask_for_scores = [&](int at) {
#pragma unroll
    for (int x = 0; x < kDim / 16; ++x)
      multiply_turned(s, matrix(keys + x / 4 * P::kKeyPanel + consumer * 8192 + x % 4 * 32, 0, 1024),
                      matrix(q_tile(at) + x / 4 * P::kQueryPanel + x % 4 * 32, 0, 1024), x > 0);
    commit();
  };
  wait(&full_kv, 0);
  wait(full_q, 0);
  begin_multiplying();
  ask_for_scores(0);
  wait_for_products<0>();
  for (int i = 0, stage = 0, phase = 0; i < tiles; ++i) {
    uint8_t* const ds = gradients + i % 2 * P::kBytesS;
    wait(full_do + stage, phase);
    begin_multiplying();
#pragma unroll
    for (int x = 0; x < kDim / 16; ++x)
      multiply_turned(dp, matrix(values + x / 4 * P::kKeyPanel + consumer * 8192 + x % 4 * 32, 0, 1024),
                      matrix(do_tile(stage) + x / 4 * P::kQueryPanel + x % 4 * 32, 0, 1024), x > 0);
    commit();
#pragma unroll
    for (int j = 0; j < kQ / 8; ++j) {  // a lane's queries: 8 j + column, and the next; keys: row, row + 8
      const float2 lse = *reinterpret_cast<const float2*>(&lse_of[stage][j * 8 + column]);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        s[j * 4 + i] = power_of_two(fmaf(s[j * 4 + i], factor, i % 2 ? -lse.y : -lse.x));
    }
    wait_for_products<0>();
#pragma unroll
    for (int j = 0; j < kQ / 8; ++j) {
      const float2 of = *reinterpret_cast<const float2*>(&delta_of[stage][j * 8 + column]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = j * 4 + half * 2, key = consumer * 64 + row + half * 8;
        p[at / 2] = pair(s[at], s[at + 1]);
        g[at / 2] = pair(s[at] * (dp[at] - of.x), s[at + 1] * (dp[at + 1] - of.y));
        *reinterpret_cast<uint32_t*>(ds + j / 8 * P::kKeyPanel + key * 128 + (j % 8 ^ key % 8) * 16 +
                                     column * 2) = g[at / 2];
      }
    }
    begin_multiplying();
#pragma unroll
    for (int x = 0; x < kQ / 16; ++x)
      multiply_gradient(my_dv, p + x * 4, matrix(do_tile(stage) + x * 2048, P::kQueryPanel, 1024));
    commit();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync 1, 256;" ::: "memory");  // both groups' gradients are there
#pragma unroll
    for (int x = 0; x < P::kKeys / 16; ++x) {
      // d 64: a group takes 64 of 128 queries; d 128: a panel of 64 columns.
      const uint8_t* const a = ds + (kDim == 64 ? consumer * P::kKeyPanel : 0) + x * 2048;
      const uint8_t* const b = keys + (kDim == 64 ? 0 : consumer * P::kKeyPanel) + x * 2048;
      multiply_dq(dq, matrix(a, 0, 1024), matrix(b, 0, 1024), x > 0);
    }
    commit();
#pragma unroll
    for (int x = 0; x < kQ / 16; ++x)
      multiply_gradient(my_dk, g + x * 4, matrix(q_tile(stage) + x * 2048, P::kQueryPanel, 1024));
    commit();
    // After the last tile its own scores are asked for once more: a product too many, but no branch here,
    // which would make the compiler run all products one after the other.
    const bool more = i + 1 < tiles;
    const int next = more ? (stage + 1) % P::kStages : stage,
              next_phase = more && next == 0 ? phase ^ 1 : phase;
    wait(full_q + next, next_phase);
    wait_for_products<2>();  // dv: its weights' registers are free for scores
    begin_multiplying();
    ask_for_scores(next);
    if (me == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the last tile has left
    asm volatile("bar.sync %0, 128;" ::"r"(2 + consumer) : "memory");
    wait_for_products<2>();  // dq
#pragma unroll
    for (int j = 0; j < 8; ++j)
      *reinterpret_cast<float4*>(my_staging + (j * 128 + me) * 16) =
          make_float4(dq[j * 4], dq[j * 4 + 1], dq[j * 4 + 2], dq[j * 4 + 3]);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(2 + consumer) : "memory");
    if (me == 0) {
      float* const to =
          sums + (static_cast<int64_t>(head) * tiles + tile_of(i)) * (kQ * kDim) + consumer * 4096;
      add_to(to, my_staging, P::kBytesSums / 2);
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    wait_for_products<0>();  // dk and the next scores
    if (more) arrive(empty + stage);
    stage = next, phase = next_phase;
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int key = first + consumer * 64 + row + half * 8;
    if (key >= n) continue;
    const int64_t to = (static_cast<int64_t>(head) * n + key) * kDim + column;
#pragma unroll
    for (int c = 0; c < kDim / 8; ++c) {
      const int at = c * 4 + half * 2;
      *reinterpret_cast<uint32_t*>(dv + to + c * 8) = pair(my_dv[at], my_dv[at + 1]);
      *reinterpret_cast<uint32_t*>(dk + to + c * 8) = pair(my_dk[at] * scale, my_dk[at + 1] * scale);
    }
  }
  if (me == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// dq = scale * sums, in which a tile lies as the accumulators of its two groups do: [group][8][128][4].
/// Two columns a thread.
template <int kDim>
__global__ void finish_dq(const float* sums, bf16* dq, int64_t pairs, int n, int tiles, float scale) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  constexpr int kQueries = Plan<kDim>::kQueries;
  const int x = static_cast<int>(i % (kDim / 2)) * 2;
  const int64_t row = i / (kDim / 2), head = row / n;
  const int query = static_cast<int>(row % n), in_tile = query % kQueries, r = in_tile % 64;
  const int group = kDim == 64 ? in_tile / 64 : x / 64, c = x % 64;
  const int thread = r / 16 * 32 + r % 8 * 4 + c % 8 / 2;
  const float2 sum =
      *reinterpret_cast<const float2*>(sums + (head * tiles + query / kQueries) * (kQueries * kDim) +
                                       ((group * 8 + c / 8) * 128 + thread) * 4 + r % 16 / 8 * 2);
  *reinterpret_cast<uint32_t*>(dq + row * kDim + x) = pair(sum.x * scale, sum.y * scale);
}

/// [heads, n, dim] as TMA sees it: boxes of 64 columns and so many rows of one head.
CUtensorMap map_of(const bf16* tensor, int64_t heads, int64_t n, int64_t dim, int box_rows) {
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
  const cuuint64_t pitch[] = {size[0] * sizeof(bf16), size[0] * size[1] * sizeof(bf16)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows), 1}, step[] = {1, 1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<bf16*>(tensor), size, pitch, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the tensor");
  return map;
}

/// Queries to the end of the last tile; both tile sizes divide 128, and workspace_bytes() may round up.
int64_t padded(int64_t n, int64_t queries) { return (n + queries - 1) / queries * queries; }

template <int kDim>
void start(const bf16* q, const bf16* k, const bf16* v, const bf16* o, const bf16* dout, const float* lse,
           bf16* dq, bf16* dk, bf16* dv, int64_t h, int64_t n, int64_t hk, void* workspace,
           cudaStream_t stream) {
  using P = Plan<kDim>;
  const int64_t rows = h * padded(n, P::kQueries), pairs = h * n * kDim / 2;
  float* const sums = static_cast<float*>(workspace);
  float* const scaled_lse = sums + rows * kDim;
  float* const delta = scaled_lse + rows;
  const double scale = 1 / std::sqrt(static_cast<double>(kDim));
  prepare_rows<<<static_cast<unsigned>((rows + 7) / 8), 256, 0, stream>>>(
      o, dout, lse, scaled_lse, delta, sums, rows, static_cast<int>(n), static_cast<int>(rows / h), kDim);
  cudaFuncSetAttribute(attention_backward<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kShared);
  const dim3 grid(static_cast<unsigned>((n + P::kKeys - 1) / P::kKeys), static_cast<unsigned>(hk));
  attention_backward<kDim><<<grid, P::kThreads, P::kShared, stream>>>(
      map_of(q, h, n, kDim, P::kQueries), map_of(k, hk, n, kDim, P::kKeys), map_of(v, hk, n, kDim, P::kKeys),
      map_of(dout, h, n, kDim, P::kQueries), scaled_lse, delta, sums, dk, dv, static_cast<int>(n),
      static_cast<int>(h / hk), static_cast<float>(M_LOG2E * scale), static_cast<float>(scale));
  finish_dq<kDim><<<static_cast<unsigned>((pairs + 255) / 256), 256, 0, stream>>>(
      sums, dq, pairs, static_cast<int>(n), static_cast<int>(rows / h / P::kQueries),
      static_cast<float>(scale));
}

extern "C" size_t workspace_bytes(int64_t h, int64_t n, int64_t d, int64_t /*hk*/) {
  return static_cast<size_t>(h * padded(n, d == 64 ? 128 : 64) * (d + 2)) * sizeof(float);
}

extern "C" void launch(const bf16* q /*[h,n,d]*/, const bf16* k /*[hk,n,d]*/, const bf16* v /*[hk,n,d]*/,
                       const bf16* o /*[h,n,d]*/, const bf16* dout /*[h,n,d]*/, const float* lse /*[h,n]*/,
                       bf16* dq /*[h,n,d]*/, bf16* dk /*[hk,n,d]*/, bf16* dv /*[hk,n,d]*/, int64_t h,
                       int64_t n, int64_t d, int64_t hk, void* workspace, cudaStream_t stream) {
  if (d == 64)
    start<64>(q, k, v, o, dout, lse, dq, dk, dv, h, n, hk, workspace, stream);
  else
    start<128>(q, k, v, o, dout, lse, dq, dk, dv, h, n, hk, workspace, stream);
}
