// Rung 1: layer_prefill's chain of twelve kernels, for one token of each sequence.
//
// Changed     only attention: a block for a sequence and a head of k walks through the cache, once for
//             all heads of q that share it. The products are those of layer_prefill's rung 1: tiles of
//             128 rows.
// Why         it is right, and it shows what a shape does: the kernels that are compute-bound there have
//             16 of 128 rows here.
// Prediction  w_qkv, w_o and w_down have 48, 32 and 32 tiles for 132 multiprocessors: they read weights
//             at a fifth of the bandwidth. 1 ms in all, where 0.21 would do.
// Came        769 us on an H100, 916 GB/s. 46 % of the native baseline.
//
// Shapes      x, y [b, hidden], hidden = 128 hq; weights [outputs, inputs]; caches [b, n, hk, 128]; k, v
//             [b, hk, 128]; bf16.
// Launch      products: 128 threads for a tile of 128 x 128; attention: 256 threads for a sequence and a
//             head.
// Resources   products: at most 255 registers, 96 KB of shared memory; attention: 33 KB; workspace: 2 b
//             (5 hidden + (hq + 2 hk) 128 + 3 f) bytes and 512 b.
// Cost        2 b hidden (2 hidden + 256 hk + 3 f) + 512 hq sum(lengths) FLOPs; the weights and the
//             cache, once.
// Divides     f % 8 == 0, hq % hk == 0, at most 8 heads of q for one of k (the problem says so); b
//             anything.
// Source      the layer: Llama 3 (Meta, 2024); attention: paged_decode's rung 3, without pages.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kDim = 128;  // of a head

// ---- numbers ----------------------------------------------------------------------------------------------
/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(uint32_t word) { return __uint_as_float(word << 16); }
__device__ float high(uint32_t word) { return __uint_as_float(word & 0xffff0000u); }
__device__ uint32_t pack(float x, float y) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
  return reinterpret_cast<const uint32_t&>(both);
}
__device__ uint32_t word_at(const bf16* from) { return *reinterpret_cast<const uint32_t*>(from); }
__device__ float silu(float x) { return x / (1 + __expf(-x)); }

/// Cosine and sine of each sequence's new position and each pair. The angle is a double: a float of 8192
/// radians has lost 12 bits.
__global__ void make_table(float2* table, const int* lengths, float theta) {
  const double angle =
      lengths[blockIdx.x] * exp2(threadIdx.x * (-2.0 / kDim) * log2(static_cast<double>(theta)));
  const double turns = angle / (2 * M_PI);
  float2 to;
  sincosf(static_cast<float>((turns - rint(turns)) * (2 * M_PI)), &to.y, &to.x);
  table[blockIdx.x * (kDim / 2) + threadIdx.x] = to;
}

// ---- the small operators, a kernel each -------------------------------------------------------------------
constexpr int kSmallThreads = 256;

/// RMSNorm: a block for a row; two elements a thread at a time.
__global__ void __launch_bounds__(kSmallThreads)
    normalise(const bf16* __restrict__ x, const bf16* __restrict__ gain, bf16* __restrict__ to, float eps,
              int hidden) {
  __shared__ float partial[kSmallThreads / 32];
  x += static_cast<int64_t>(blockIdx.x) * hidden, to += static_cast<int64_t>(blockIdx.x) * hidden;
  float sum = 0;
  for (int i = 2 * threadIdx.x; i < hidden; i += 2 * kSmallThreads) {
    const uint32_t pair = word_at(x + i);
    sum += low(pair) * low(pair) + high(pair) * high(pair);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < kSmallThreads / 32; ++warp) sum += partial[warp];
  const float scale = rsqrtf(sum / static_cast<float>(hidden) + eps);
  for (int i = 2 * threadIdx.x; i < hidden; i += 2 * kSmallThreads) {
    const uint32_t pair = word_at(x + i), factor = word_at(gain + i);
    *reinterpret_cast<uint32_t*>(to + i) =
        pack(low(pair) * scale * low(factor), high(pair) * scale * high(factor));
  }
}

/// Takes the heads of a token apart, and rotates those of q and k: a block for a token, 64 threads a head.
__global__ void __launch_bounds__(kSmallThreads)
    rotate(const bf16* __restrict__ qkv, const float2* __restrict__ table, bf16* __restrict__ q,
           bf16* __restrict__ k, bf16* __restrict__ v, int hq, int hk) {
  const int64_t token = blockIdx.x;
  const int pair = threadIdx.x % (kDim / 2);
  const float2 turn = table[token * (kDim / 2) + pair];
  for (int head = threadIdx.x / (kDim / 2); head < hq + 2 * hk; head += kSmallThreads / (kDim / 2)) {
    const bf16* const from = qkv + (token * (hq + 2 * hk) + head) * kDim + pair;
    bf16* const to = (head < hq        ? q + (token * hq + head) * kDim
                      : head < hq + hk ? k + (token * hk + head - hq) * kDim
                                       : v + (token * hk + head - hq - hk) * kDim) +
                     pair;
    const float a = __bfloat162float(from[0]), b = __bfloat162float(from[kDim / 2]);
    const bool turned = head < hq + hk;
    to[0] = __float2bfloat16(turned ? a * turn.x - b * turn.y : a);
    to[kDim / 2] = __float2bfloat16(turned ? b * turn.x + a * turn.y : b);
  }
}

__global__ void __launch_bounds__(kSmallThreads)
    add(const bf16* __restrict__ x, const bf16* __restrict__ p, bf16* __restrict__ to, int64_t words) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSmallThreads + threadIdx.x;
  if (i >= words) return;
  const uint32_t a = word_at(x + 2 * i), b = word_at(p + 2 * i);
  reinterpret_cast<uint32_t*>(to)[i] = pack(low(a) + low(b), high(a) + high(b));
}

/// gu [rows, 2 f]: the gates of a row, then its ups.
__global__ void __launch_bounds__(kSmallThreads)
    swiglu(const bf16* __restrict__ gu, bf16* __restrict__ h, int64_t words, int64_t f) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSmallThreads + threadIdx.x;
  if (i >= words) return;
  const int64_t row = 2 * i / f, column = 2 * i % f;
  const uint32_t gate = word_at(gu + row * 2 * f + column), up = word_at(gu + row * 2 * f + f + column);
  reinterpret_cast<uint32_t*>(h)[i] = pack(silu(low(gate)) * low(up), silu(high(gate)) * high(up));
}

// ---- tensor cores -----------------------------------------------------------------------------------------
__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
/// d += a b: 16 x 8 results, 16 deep.
__device__ void multiply(float* d, const uint32_t* a, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// 16 bytes to shared memory; zeros, if they do not exist.
__device__ void copy(void* to, const bf16* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to)), "l"(from),
               "r"(exists ? 16 : 0)
               : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kOnTheirWay>
__device__ void arrived() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOnTheirWay) : "memory");
}

// ---- the product: c = a w^T -------------------------------------------------------------------------------
constexpr int kWarps = 4, kThreads = 32 * kWarps, kRows = 32 * kWarps, kColumns = 128, kDepth = 64,
              kStages = 3;
constexpr int kTileBytes = kRows * kDepth * 2, kProductShared = kStages * 2 * kTileBytes;

/// Rows of 128 bytes; 16-byte piece p of row r lies at p ^ (r % 8).
__device__ int place(int row, int piece) { return row * 128 + (piece ^ row % 8) * 16; }

/// Four warps have 32 rows each and all 128 columns.
__global__ void __launch_bounds__(kThreads, 2) product(const bf16* __restrict__ a, const bf16* __restrict__ w,
                                                       bf16* __restrict__ c, int m, int k, int n) {
  extern __shared__ __align__(128) uint8_t shared[];
  const int row0 = blockIdx.x * kRows, column0 = blockIdx.y * kColumns, steps = (k + kDepth - 1) / kDepth;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // A thread copies a 16-byte piece of every 16th row.
  const int own_row = threadIdx.x / 8, piece = threadIdx.x % 8;
  const int64_t stride = int64_t{kThreads / 8} * k;
  const bf16 *const own_a = a + static_cast<int64_t>(row0 + own_row) * k + piece * 8,
                    *const own_w = w + static_cast<int64_t>(column0 + own_row) * k + piece * 8;
  const auto fetch = [&](int step) {
    uint8_t* const to = shared + step % kStages * 2 * kTileBytes + place(own_row, piece);
    const bool in_k = step * kDepth + piece * 8 < k;
#pragma unroll
    for (int i = 0; i < kRows * 8 / kThreads; ++i) {
      const int row = own_row + i * kThreads / 8;
      const bool in_a = in_k && row0 + row < m, in_w = in_k && column0 + row < n;
      copy(to + i * kThreads * 16, in_a ? own_a + i * stride + step * kDepth : a, in_a);
      copy(to + kTileBytes + i * kThreads * 16, in_w ? own_w + i * stride + step * kDepth : a, in_w);
    }
  };
  float d[2][16][4] = {};
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) fetch(step);
    commit();
  }
  for (int step = 0; step < steps; ++step) {
    arrived<kStages - 2>();
    __syncthreads();  // this step's tiles are there; those of the step before have been used
    if (step + kStages - 1 < steps) fetch(step + kStages - 1);
    commit();
    const uint8_t *const of_a = shared + step % kStages * 2 * kTileBytes, *const of_w = of_a + kTileBytes;
#pragma unroll
    for (int i = 0; i < kDepth / 16; ++i) {
      uint32_t rows[2][4];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        matrices(rows[half], of_a + place(warp * 32 + half * 16 + lane % 16, i * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        uint32_t b[4];
        matrices(b, of_w + place(j * 16 + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          multiply(d[half][2 * j], rows[half], b[0], b[1]);
          multiply(d[half][2 * j + 1], rows[half], b[2], b[3]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // rows lane / 4, and 8, 16 and 24 below
    const int row = row0 + warp * 32 + i * 8 + lane / 4;
    if (row >= m) continue;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const int column = column0 + j * 8 + lane % 4 * 2;
      if (column < n)
        *reinterpret_cast<uint32_t*>(c + static_cast<int64_t>(row) * n + column) =
            pack(d[i / 2][j][i % 2 * 2], d[i / 2][j][i % 2 * 2 + 1]);
    }
  }
}

void multiply(const bf16* a, const bf16* w, bf16* c, int64_t m, int64_t k, int64_t n, cudaStream_t stream) {
  cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, kProductShared);
  const dim3 grid(static_cast<unsigned>((m + kRows - 1) / kRows),
                  static_cast<unsigned>((n + kColumns - 1) / kColumns));
  product<<<grid, kThreads, kProductShared, stream>>>(a, w, c, static_cast<int>(m), static_cast<int>(k),
                                                      static_cast<int>(n));
}

// ---- attention: a block for a sequence and a head of k ----------------------------------------------------
constexpr int kAttentionWarps = 8, kAttentionThreads = 32 * kAttentionWarps, kLanes = kDim / 8,
              kTokens = kAttentionThreads / kLanes;
constexpr int kSteps = 4, kMostGroup = 8;  // tokens that 16 lanes ask for at once; heads of q for a head of k

struct Eight {
  float x[8];
  __device__ explicit Eight(uint4 w)
      : x{low(w.x), high(w.x), low(w.y), high(w.y), low(w.z), high(w.z), low(w.w), high(w.w)} {}
};
__device__ uint4 sixteen_bytes(const bf16* at) { return __ldg(reinterpret_cast<const uint4*>(at)); }

/// kGroup: heads of q for a head of k, or the next power of two. A sequence has its cache and the new token
/// behind it.
template <int kGroup>
__global__ void __launch_bounds__(kAttentionThreads)
    attention(const bf16* __restrict__ q, const bf16* __restrict__ k_cache, const bf16* __restrict__ v_cache,
              const int* __restrict__ lengths, const bf16* k, const bf16* v, bf16* __restrict__ o, int64_t n,
              int hq, int hk, float factor) {
  __shared__ float tops[kAttentionWarps][kGroup], sums[kAttentionWarps][kGroup],
      parts[kAttentionWarps][kGroup][kDim];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % kLanes * 8, group = hq / hk;
  const int64_t head = blockIdx.x, s = blockIdx.y, first = s * hq + head * group;
  const int length = lengths[s];
  const auto place_of = [&](int token) { return ((s * n + token) * hk + head) * kDim + column; };
  const int64_t place_of_new = (s * hk + head) * kDim + column;
  float query[kGroup][8], mine[kGroup][8] = {}, top[kGroup], sum[kGroup] = {};
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    top[g] = -INFINITY;
    const Eight eight(g < group ? sixteen_bytes(q + (first + g) * kDim + column) : make_uint4(0, 0, 0, 0));
#pragma unroll
    for (int i = 0; i < 8; ++i) query[g][i] = eight.x[i] * factor;
  }
  // All lanes of a warp go on as long as one has a token: they exchange scores.
  for (int token = threadIdx.x / kLanes; token - lane / kLanes <= length; token += kSteps * kTokens) {
    uint4 key[kSteps], value[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const int at = token + i * kTokens;
      key[i] = at < length ? sixteen_bytes(k_cache + place_of(at)) : sixteen_bytes(k + place_of_new);
      value[i] = at < length ? sixteen_bytes(v_cache + place_of(at)) : sixteen_bytes(v + place_of_new);
    }
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const Eight keys(key[i]), values(value[i]);
      const bool exists = token + i * kTokens <= length;
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
        float score = 0;
#pragma unroll
        for (int x = 0; x < 8; ++x) score += query[g][x] * keys.x[x];
#pragma unroll
        for (int offset = kLanes / 2; offset > 0; offset /= 2)
          score += __shfl_xor_sync(0xffffffffu, score, offset);
        if (!exists) continue;
        if (score > top[g]) {
          const float shrink = exp2f(top[g] - score);
          top[g] = score;
          sum[g] *= shrink;
#pragma unroll
          for (int x = 0; x < 8; ++x) mine[g][x] *= shrink;
        }
        const float weight = exp2f(score - top[g]);
        sum[g] += weight;
#pragma unroll
        for (int x = 0; x < 8; ++x) mine[g][x] += weight * values.x[x];
      }
    }
  }
  // The two halves of a warp, then the warps.
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    const float highest = fmaxf(top[g], __shfl_xor_sync(0xffffffffu, top[g], kLanes));
    const float shrink = top[g] == -INFINITY ? 0 : exp2f(top[g] - highest);
    sum[g] *= shrink;
    sum[g] += __shfl_xor_sync(0xffffffffu, sum[g], kLanes);
#pragma unroll
    for (int x = 0; x < 8; ++x) {
      mine[g][x] *= shrink;
      mine[g][x] += __shfl_xor_sync(0xffffffffu, mine[g][x], kLanes);
    }
    if (lane == 0) tops[warp][g] = highest, sums[warp][g] = sum[g];
    if (lane < kLanes) {
#pragma unroll
      for (int x = 0; x < 8; ++x) parts[warp][g][column + x] = mine[g][x];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < group * kDim; i += kAttentionThreads) {
    const int g = i / kDim, x = i % kDim;
    float highest = -INFINITY, total = 0, result = 0;
    for (int w = 0; w < kAttentionWarps; ++w) highest = fmaxf(highest, tops[w][g]);
    for (int w = 0; w < kAttentionWarps; ++w) {
      if (sums[w][g] == 0) continue;  // a warp without tokens
      const float shrink = exp2f(tops[w][g] - highest);
      total += sums[w][g] * shrink;
      result += parts[w][g][x] * shrink;
    }
    o[(first + g) * kDim + x] = __float2bfloat16(result / total);
  }
}

void attend(const bf16* q, const bf16* k_cache, const bf16* v_cache, const int* lengths, const bf16* k,
            const bf16* v, bf16* o, int64_t b, int64_t n, int64_t hq, int64_t hk, cudaStream_t stream) {
  const int64_t group = hq / hk;
  const auto kernel = group <= 1   ? attention<1>
                      : group <= 2 ? attention<2>
                      : group <= 4 ? attention<4>
                                   : attention<kMostGroup>;
  const float factor =
      static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim)));  // exponentials to the base 2
  kernel<<<dim3(static_cast<unsigned>(hk), static_cast<unsigned>(b)), kAttentionThreads, 0, stream>>>(
      q, k_cache, v_cache, lengths, k, v, o, n, static_cast<int>(hq), static_cast<int>(hk), factor);
}

// ---- the layer --------------------------------------------------------------------------------------------
/// The workspace, cut into pieces that start on 256 bytes.
struct Pieces {
  uint8_t* at;
  size_t used = 0;

  template <class T>
  T* next(int64_t count) {
    T* const piece = reinterpret_cast<T*>(at + used);
    used += (static_cast<size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return piece;
  }
};
struct Workspace {
  size_t bytes;
  float2* table;
  bf16 *a, *qkv, *q, *o, *p, *r, *gu, *h;

  Workspace(void* workspace, int64_t rows, int64_t hq, int64_t hk, int64_t f) {
    Pieces pieces{static_cast<uint8_t*>(workspace)};
    const int64_t hidden = hq * kDim;
    table = pieces.next<float2>(rows * (kDim / 2));
    a = pieces.next<bf16>(rows * hidden), qkv = pieces.next<bf16>(rows * (hq + 2 * hk) * kDim),
    q = pieces.next<bf16>(rows * hidden);
    o = pieces.next<bf16>(rows * hidden), p = pieces.next<bf16>(rows * hidden),
    r = pieces.next<bf16>(rows * hidden);
    gu = pieces.next<bf16>(rows * 2 * f), h = pieces.next<bf16>(rows * f);
    bytes = pieces.used;
  }
};
unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kSmallThreads - 1) / kSmallThreads);
}

extern "C" size_t workspace_bytes(int64_t b, int64_t hq, int64_t hk, int64_t f, int64_t /*n*/) {
  return Workspace(nullptr, b, hq, hk, f).bytes;
}

extern "C" void launch(const bf16* x /*[b,128 * hq]*/, const bf16* g_1 /*[128 * hq]*/,
                       const bf16* w_qkv /*[128 * (hq + 2 * hk),128 * hq]*/,
                       const bf16* w_o /*[128 * hq,128 * hq]*/, const bf16* g_2 /*[128 * hq]*/,
                       const bf16* w_gu /*[2 * f,128 * hq]*/, const bf16* w_down /*[128 * hq,f]*/,
                       const bf16* k_cache /*[b,n,hk,128]*/, const bf16* v_cache /*[b,n,hk,128]*/,
                       const int32_t* lengths /*[b]*/, bf16* y /*[b,128 * hq]*/, bf16* k /*[b,hk,128]*/,
                       bf16* v /*[b,hk,128]*/, float eps, float theta, int64_t b, int64_t hq, int64_t hk,
                       int64_t f, int64_t n, void* workspace, cudaStream_t stream) {
  const Workspace w(workspace, b, hq, hk, f);
  const int64_t hidden = hq * kDim;
  const auto rows = static_cast<unsigned>(b);
  make_table<<<rows, kDim / 2, 0, stream>>>(w.table, lengths, theta);
  normalise<<<rows, kSmallThreads, 0, stream>>>(x, g_1, w.a, eps, static_cast<int>(hidden));
  multiply(w.a, w_qkv, w.qkv, b, hidden, (hq + 2 * hk) * kDim, stream);
  rotate<<<rows, kSmallThreads, 0, stream>>>(w.qkv, w.table, w.q, k, v, static_cast<int>(hq),
                                             static_cast<int>(hk));
  attend(w.q, k_cache, v_cache, lengths, k, v, w.o, b, n, hq, hk, stream);
  multiply(w.o, w_o, w.p, b, hidden, hidden, stream);
  add<<<blocks_for(b * hidden / 2), kSmallThreads, 0, stream>>>(x, w.p, w.r, b * hidden / 2);
  normalise<<<rows, kSmallThreads, 0, stream>>>(w.r, g_2, w.a, eps, static_cast<int>(hidden));
  multiply(w.a, w_gu, w.gu, b, hidden, 2 * f, stream);
  swiglu<<<blocks_for(b * f / 2), kSmallThreads, 0, stream>>>(w.gu, w.h, b * f / 2, f);
  multiply(w.h, w_down, w.p, b, f, hidden, stream);
  add<<<blocks_for(b * hidden / 2), kSmallThreads, 0, stream>>>(w.r, w.p, y, b * hidden / 2);
}
