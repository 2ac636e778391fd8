// Rung 2: layer_prefill's eight fused kernels, for one token of each sequence.
//
// Changed     rotation, SwiGLU and residuals move into the products, as in layer_prefill's rung 2.
// Why         four launches less. In layer_prefill this fusion saves 0.7 GB; here it saves 3 MB.
// Prediction  four launches and empty pipelines of 2 to 3 us each: 10 us, 1.01x. The tiles are still made
//             for 128 rows, so weights are still read by a quarter of the multiprocessors.
// Came        792 us on an H100, 891 GB/s, 0.97 times the rung before. 44 % of the native baseline.
//
// Shapes      x, y [b, hidden], hidden = 128 hq; weights [outputs, inputs]; caches [b, n, hk, 128]; k, v
//             [b, hk, 128]; bf16.
// Launch      products: 128 threads for a tile of 128 x 128; attention: 256 threads for a sequence and a
//             head.
// Resources   products: at most 255 registers, 96 KB of shared memory; attention: 33 KB; workspace: 2 b
//             (4 hidden + f) bytes and 512 b.
// Cost        2 b hidden (2 hidden + 256 hk + 3 f) + 512 hq sum(lengths) FLOPs; the weights and the
//             cache, once.
// Divides     f % 8 == 0, hq % hk == 0, at most 8 heads of q for one of k (the problem says so); b
//             anything.
// Source      two halves of a tile: see gemm_swiglu.
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

// ---- RMSNorm --------------------------------------------------------------------------------------------
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

// ---- the product: epilogue(a w^T) -------------------------------------------------------------------------
constexpr int kWarps = 4, kThreads = 32 * kWarps, kRows = 32 * kWarps, kColumns = 128, kDepth = 64,
              kStages = 3;
constexpr int kTileBytes = kRows * kDepth * 2, kProductShared = kStages * 2 * kTileBytes;

/// Rows of 128 bytes; 16-byte piece p of row r lies at p ^ (r % 8).
__device__ int place(int row, int piece) { return row * 128 + (piece ^ row % 8) * 16; }
__device__ uint32_t& word_of(bf16* to) { return *reinterpret_cast<uint32_t*>(to); }

/// q, k and v from a tile, which is one head.
struct Heads {
  const float2* table;
  bf16 *q, *k, *v;
  int hq, hk;

  /// Where a half of the tile begins in w, and how many of its rows exist.
  __device__ int64_t row_of_w(int tile, int half) const { return tile * kColumns + half * (kColumns / 2); }
  __device__ int rows_of_half(int) const { return kColumns / 2; }
  /// Columns c, c + 1 of the tile's first half and of its second half.
  __device__ void store(int token, int head, int c, float a0, float a1, float b0, float b1) const {
    bf16* const to = c + (head < hq        ? q + (static_cast<int64_t>(token) * hq + head) * kDim
                          : head < hq + hk ? k + (static_cast<int64_t>(token) * hk + head - hq) * kDim
                                           : v + (static_cast<int64_t>(token) * hk + head - hq - hk) * kDim);
    if (head < hq + hk) {
      const float4 turn =
          *reinterpret_cast<const float4*>(table + static_cast<int64_t>(token) * (kDim / 2) + c);
      word_of(to) = pack(a0 * turn.x - b0 * turn.y, a1 * turn.z - b1 * turn.w);
      word_of(to + kDim / 2) = pack(b0 * turn.x + a0 * turn.y, b1 * turn.z + a1 * turn.w);
    } else {
      word_of(to) = pack(a0, a1);
      word_of(to + kDim / 2) = pack(b0, b1);
    }
  }
};
/// The product plus what was there before.
struct Residual {
  const bf16* x;
  bf16* to;
  int n;

  __device__ int64_t row_of_w(int tile, int half) const { return tile * kColumns + half * (kColumns / 2); }
  __device__ int rows_of_half(int) const { return kColumns / 2; }
  __device__ void store(int token, int tile, int c, float a0, float a1, float b0, float b1) const {
    const int64_t at = static_cast<int64_t>(token) * n + tile * kColumns + c;
    const uint32_t a = word_at(x + at), b = word_at(x + at + kColumns / 2);
    word_of(to + at) = pack(low(a) + a0, high(a) + a1);
    word_of(to + at + kColumns / 2) = pack(low(b) + b0, high(b) + b1);
  }
};
/// A tile has 64 gates and the 64 ups that belong to them.
struct Gated {
  bf16* to;
  int f;

  __device__ int64_t row_of_w(int tile, int half) const {
    return tile * (kColumns / 2) + static_cast<int64_t>(half) * f;
  }
  __device__ int rows_of_half(int tile) const { return f - tile * (kColumns / 2); }
  __device__ void store(int token, int tile, int c, float gate0, float gate1, float up0, float up1) const {
    const int column = tile * (kColumns / 2) + c;
    if (column < f)
      word_of(to + static_cast<int64_t>(token) * f + column) = pack(silu(gate0) * up0, silu(gate1) * up1);
  }
};

/// Four warps have 32 rows each and all 128 columns: a thread has columns c and c + 64 of its rows.
template <class Epilogue>
__global__ void __launch_bounds__(kThreads, 2)
    product(const bf16* __restrict__ a, const bf16* __restrict__ w, Epilogue epilogue, int m, int k) {
  extern __shared__ __align__(128) uint8_t shared[];
  const int row0 = blockIdx.x * kRows, tile = blockIdx.y, steps = (k + kDepth - 1) / kDepth;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // A thread copies a 16-byte piece of every 16th row.
  const int own_row = threadIdx.x / 8, piece = threadIdx.x % 8, exist = epilogue.rows_of_half(tile);
  const int64_t stride = int64_t{kThreads / 8} * k;
  const bf16* const own_a = a + static_cast<int64_t>(row0 + own_row) * k + piece * 8;
  const bf16* const own_w[2] = {w + (epilogue.row_of_w(tile, 0) + own_row) * k + piece * 8,
                                w + (epilogue.row_of_w(tile, 1) + own_row) * k + piece * 8};
  const auto fetch = [&](int step) {
    uint8_t* const to = shared + step % kStages * 2 * kTileBytes + place(own_row, piece);
    const bool in_k = step * kDepth + piece * 8 < k;
#pragma unroll
    for (int i = 0; i < kRows * 8 / kThreads; ++i) {
      const int row = own_row + i * kThreads / 8;
      const bool in_a = in_k && row0 + row < m, in_w = in_k && row % (kColumns / 2) < exist;
      copy(to + i * kThreads * 16, in_a ? own_a + i * stride + step * kDepth : a, in_a);
      copy(to + kTileBytes + i * kThreads * 16, in_w ? own_w[i / 4] + i % 4 * stride + step * kDepth : a,
           in_w);
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
    for (int j = 0; j < 8; ++j) {
      const float *const left = d[i / 2][j] + i % 2 * 2, *const right = d[i / 2][j + 8] + i % 2 * 2;
      epilogue.store(row, tile, j * 8 + lane % 4 * 2, left[0], left[1], right[0], right[1]);
    }
  }
}

/// `tiles`: of 128 rows of w.
template <class Epilogue>
void multiply(const bf16* a, const bf16* w, const Epilogue& epilogue, int64_t m, int64_t k, int64_t tiles,
              cudaStream_t stream) {
  cudaFuncSetAttribute(product<Epilogue>, cudaFuncAttributeMaxDynamicSharedMemorySize, kProductShared);
  const dim3 grid(static_cast<unsigned>((m + kRows - 1) / kRows), static_cast<unsigned>(tiles));
  product<Epilogue>
      <<<grid, kThreads, kProductShared, stream>>>(a, w, epilogue, static_cast<int>(m), static_cast<int>(k));
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
  bf16 *a, *q, *o, *r, *h;

  Workspace(void* workspace, int64_t rows, int64_t hidden, int64_t f) {
    Pieces pieces{static_cast<uint8_t*>(workspace)};
    table = pieces.next<float2>(rows * (kDim / 2));
    a = pieces.next<bf16>(rows * hidden);
    q = pieces.next<bf16>(rows * hidden), o = pieces.next<bf16>(rows * hidden),
    r = pieces.next<bf16>(rows * hidden);
    h = pieces.next<bf16>(rows * f);
    bytes = pieces.used;
  }
};

extern "C" size_t workspace_bytes(int64_t b, int64_t hq, int64_t /*hk*/, int64_t f, int64_t /*n*/) {
  return Workspace(nullptr, b, hq * kDim, f).bytes;
}

extern "C" void launch(const bf16* x /*[b,128 * hq]*/, const bf16* g_1 /*[128 * hq]*/,
                       const bf16* w_qkv /*[128 * (hq + 2 * hk),128 * hq]*/,
                       const bf16* w_o /*[128 * hq,128 * hq]*/, const bf16* g_2 /*[128 * hq]*/,
                       const bf16* w_gu /*[2 * f,128 * hq]*/, const bf16* w_down /*[128 * hq,f]*/,
                       const bf16* k_cache /*[b,n,hk,128]*/, const bf16* v_cache /*[b,n,hk,128]*/,
                       const int32_t* lengths /*[b]*/, bf16* y /*[b,128 * hq]*/, bf16* k /*[b,hk,128]*/,
                       bf16* v /*[b,hk,128]*/, float eps, float theta, int64_t b, int64_t hq, int64_t hk,
                       int64_t f, int64_t n, void* workspace, cudaStream_t stream) {
  const int64_t hidden = hq * kDim, heads = hq + 2 * hk;
  const Workspace w(workspace, b, hidden, f);
  make_table<<<static_cast<unsigned>(b), kDim / 2, 0, stream>>>(w.table, lengths, theta);
  normalise<<<static_cast<unsigned>(b), kSmallThreads, 0, stream>>>(x, g_1, w.a, eps,
                                                                    static_cast<int>(hidden));
  multiply(w.a, w_qkv, Heads{w.table, w.q, k, v, static_cast<int>(hq), static_cast<int>(hk)}, b, hidden,
           heads, stream);
  attend(w.q, k_cache, v_cache, lengths, k, v, w.o, b, n, hq, hk, stream);
  multiply(w.o, w_o, Residual{x, w.r, static_cast<int>(hidden)}, b, hidden, hq, stream);
  normalise<<<static_cast<unsigned>(b), kSmallThreads, 0, stream>>>(w.r, g_2, w.a, eps,
                                                                    static_cast<int>(hidden));
  multiply(w.a, w_gu, Gated{w.h, static_cast<int>(f)}, b, hidden, (2 * f + kColumns - 1) / kColumns, stream);
  multiply(w.h, w_down, Residual{w.r, y, static_cast<int>(hidden)}, b, f, hq, stream);
}
