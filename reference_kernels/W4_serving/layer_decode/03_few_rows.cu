// Rung 3: products of few rows, split over k; attention, split over tokens.
//
// Changed     weights are the operand with 16 rows, x the one with eight columns. A block has 32 or 64
//             rows of w; its eight warps share k, load weights straight into registers, 16 bytes at a
//             time and 64 KB a multiprocessor, and add up at the end. The norms are folded in: the gain
//             is multiplied in and squares are added up on the way, the scale comes last. A block of
//             attention has 512 tokens of a sequence; a small kernel merges such pieces.
// Why         rung 2's tiles have 128 rows of which 16 exist, and 32 to 224 blocks for 132
//             multiprocessors with two places each. The longest sequence keeps eight multiprocessors busy
//             when all others are done.
// Prediction  weights at 75 % of the bandwidth, 175 us; the cache at 60 %, 135 us; with launches 330 us:
//             3x rung 2.
// Came        367 us on an H100, 1921 GB/s, 2.16 times the rung before. 96 % of the native baseline.
//
// Shapes      x, y [b, hidden], hidden = 128 hq; weights [outputs, inputs]; caches [b, n, hk, 128]; k, v
//             [b, hk, 128]; bf16.
// Launch      products: 256 threads for 32 or 64 rows of w and 16 of x; attention: 256 threads for 512
//             tokens of a sequence and a head; merge: 128 threads for a head of q.
// Resources   products: at most 128 registers, 33 KB of shared memory, two blocks a multiprocessor;
//             attention: 33 KB; workspace: 2 b (3 hidden + f) bytes, 512 b, and 516 for each piece and
//             head of q.
// Cost        2 b hidden (2 hidden + 256 hk + 3 f) + 512 hq sum(lengths) FLOPs; the weights and the
//             cache, once.
// Divides     f % 8 == 0, hq % hk == 0, at most 8 heads of q for one of k (the problem says so); b
//             anything.
// Source      products: rmsnorm_qkv's rung 2; T. Dao et al., "Flash-Decoding for long-context inference"
//             (2023).
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

// ---- tensor cores -----------------------------------------------------------------------------------------
/// d += a b: 16 x 8 results, 16 deep.
__device__ void multiply(float* d, const uint32_t* a, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---- the product of few rows: epilogue(x w^T) -------------------------------------------------------------
constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kChunk = 32;     // columns of k that a warp multiplies at a time: 16 bytes of each row a thread
constexpr int kMostRows = 16;  // of x in a slab

__device__ uint32_t scaled(uint32_t x, uint32_t gain) {
  return pack(low(x) * low(gain), high(x) * high(gain));
}
__device__ float squares(uint32_t x) { return low(x) * low(x) + high(x) * high(x); }
__device__ float squares(uint4 x) { return squares(x.x) + squares(x.y) + squares(x.z) + squares(x.w); }

/// Rows of w come in pairs of 16, whose results for a token meet in one thread. Pair p of `Heads`: 16 rows of
/// the first half of a head and those of the second half that they are rotated with.
struct Heads {
  static constexpr bool kNorm = true;
  static constexpr int kPairs = 1;  // of a block
  const float2* table;
  bf16 *q, *k, *v;
  int hq, hk;

  __device__ int64_t row_of_w(int pair, int half, int row) const {
    return pair / 4 * kDim + half * (kDim / 2) + pair % 4 * 16 + row;
  }
  __device__ void store(int token, int pair, int row, float a, float b) const {
    const int head = pair / 4, c = pair % 4 * 16 + row;
    bf16* const to = c + (head < hq        ? q + (static_cast<int64_t>(token) * hq + head) * kDim
                          : head < hq + hk ? k + (static_cast<int64_t>(token) * hk + head - hq) * kDim
                                           : v + (static_cast<int64_t>(token) * hk + head - hq - hk) * kDim);
    const float2 turn = head < hq + hk ? table[token * (kDim / 2) + c] : make_float2(1, 0);
    to[0] = __float2bfloat16(a * turn.x - b * turn.y);
    to[kDim / 2] = __float2bfloat16(b * turn.x + a * turn.y);
  }
};
/// The product plus what was there before.
struct Residual {
  static constexpr bool kNorm = false;
  static constexpr int kPairs = 1;
  const bf16* x;
  bf16* to;
  int n;

  __device__ int64_t row_of_w(int pair, int half, int row) const { return pair * 32 + half * 16 + row; }
  __device__ void store(int token, int pair, int row, float a, float b) const {
    const int64_t at = static_cast<int64_t>(token) * n + pair * 32 + row;
    to[at] = __float2bfloat16(__bfloat162float(x[at]) + a);
    to[at + 16] = __float2bfloat16(__bfloat162float(x[at + 16]) + b);
  }
};
/// 16 gates and the ups that belong to them.
struct Gated {
  static constexpr bool kNorm = true;
  static constexpr int kPairs = 2;
  bf16* to;
  int f;

  __device__ int64_t row_of_w(int pair, int half, int row) const {
    return pair * 16 + row < f ? half * static_cast<int64_t>(f) + pair * 16 + row
                               : 2 * static_cast<int64_t>(f);  // 2 f: there is no such row
  }
  __device__ void store(int token, int pair, int row, float gate, float up) const {
    if (pair * 16 + row < f)
      to[static_cast<int64_t>(token) * f + pair * 16 + row] = __float2bfloat16(silu(gate) * up);
  }
};

/// The warps of a block share k. The weights are the operand with 16 rows, x the one with eight columns;
/// kHalves: eights of x's rows. Any order of k serves a sum: the 16 bytes that a thread loads of a row are
/// what two products of depth 16 need of it.
template <class Epilogue, int kHalves>
__global__ void __launch_bounds__(kThreads, Epilogue::kPairs == 1 ? 2 : 1)
    product(const bf16* __restrict__ x, const bf16* __restrict__ gain, const bf16* __restrict__ w,
            Epilogue epilogue, float eps, int m, int k, int n) {
  constexpr int kGroups = 2 * Epilogue::kPairs, kAhead = 8 / kGroups;  // 16 rows each; chunks on their way
  constexpr int kResults = 16 * 8 * kHalves;                           // of a group
  __shared__ float partial[kWarps][kGroups][kResults], square_of[kWarps][kMostRows];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 8;
  const int slab = blockIdx.y * kMostRows, rows = m - slab < kMostRows ? m - slab : kMostRows;
  const bf16* from[kGroups];
  bool exists[kGroups][2];
#pragma unroll
  for (int g = 0; g < kGroups; ++g)
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int64_t of_w = epilogue.row_of_w(blockIdx.x * Epilogue::kPairs + g / 2, g % 2, row + 8 * below);
      exists[g][below] = of_w < n;
      if (below == 0) from[g] = w + of_w * k + column;
    }
  const int steps = (k + kChunk * kWarps - 1) / (kChunk * kWarps);
  const auto fetch = [&](int step, uint4(&to)[kGroups][2]) {
    const int c = (warp + step * kWarps) * kChunk;
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
#pragma unroll
      for (int below = 0; below < 2; ++below)
        to[g][below] = exists[g][below] && c + column < k
                           ? __ldcs(reinterpret_cast<const uint4*>(from[g] + below * 8 * k + c))
                           : make_uint4(0, 0, 0, 0);
  };
  uint4 ahead[kAhead][kGroups][2];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) fetch(i, ahead[i]);
  float d[kGroups][kHalves][4] = {}, square[kHalves] = {};
  for (int first = 0; first < steps; first += kAhead)
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int c = (warp + (first + i) * kWarps) * kChunk + column;
      uint4 factor = make_uint4(0, 0, 0, 0), b[kHalves];
      if (Epilogue::kNorm && c < k) factor = __ldg(reinterpret_cast<const uint4*>(gain + c));
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        b[half] = make_uint4(0, 0, 0, 0);
        if (row + 8 * half < rows && c < k)
          b[half] = *reinterpret_cast<const uint4*>(x + static_cast<int64_t>(slab + row + 8 * half) * k + c);
        if constexpr (Epilogue::kNorm) {
          square[half] += squares(b[half]);
          b[half] = make_uint4(scaled(b[half].x, factor.x), scaled(b[half].y, factor.y),
                               scaled(b[half].z, factor.z), scaled(b[half].w, factor.w));
        }
      }
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const uint4 above = ahead[i][g][0], below = ahead[i][g][1];
        const uint32_t left[4] = {above.x, below.x, above.y, below.y},
                       right[4] = {above.z, below.z, above.w, below.w};
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
          multiply(d[g][half], left, b[half].x, b[half].y);
          multiply(d[g][half], right, b[half].z, b[half].w);
        }
      }
      fetch(first + kAhead + i, ahead[i]);
    }
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    square[half] += __shfl_xor_sync(0xffffffffu, square[half], 1);
    square[half] += __shfl_xor_sync(0xffffffffu, square[half], 2);
    if (lane % 4 == 0) square_of[warp][row + 8 * half] = square[half];
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {  // [row of w][row of x]
      float* const to = partial[warp][g] + row * 8 * kHalves + half * 8 + lane % 4 * 2;
      to[0] = d[g][half][0], to[1] = d[g][half][1];
      to[64 * kHalves] = d[g][half][2], to[64 * kHalves + 1] = d[g][half][3];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kResults * Epilogue::kPairs; i += kThreads) {
    const int pair = i / kResults, of_w = i % 16, of_x = i % kResults / 16;
    if (of_x >= rows) continue;
    float a = 0, b = 0, sum = 0;
#pragma unroll
    for (int other = 0; other < kWarps; ++other) {
      a += partial[other][2 * pair][of_w * 8 * kHalves + of_x];
      b += partial[other][2 * pair + 1][of_w * 8 * kHalves + of_x];
      sum += square_of[other][of_x];
    }
    const float scale = Epilogue::kNorm ? rsqrtf(sum / static_cast<float>(k) + eps) : 1;
    epilogue.store(slab + of_x, blockIdx.x * Epilogue::kPairs + pair, of_w, a * scale, b * scale);
  }
}

/// `pairs`: of 16 rows of w each.
template <class Epilogue>
void multiply(const bf16* x, const bf16* gain, const bf16* w, const Epilogue& epilogue, float eps, int64_t m,
              int64_t k, int64_t n, int64_t pairs, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((pairs + Epilogue::kPairs - 1) / Epilogue::kPairs),
                  static_cast<unsigned>((m + kMostRows - 1) / kMostRows));
  const auto kernel = m <= 8 ? product<Epilogue, 1> : product<Epilogue, 2>;
  kernel<<<grid, kThreads, 0, stream>>>(x, gain, w, epilogue, eps, static_cast<int>(m), static_cast<int>(k),
                                        static_cast<int>(n));
}

// ---- attention: a block for a piece of a sequence and a head of k -----------------------------------------
constexpr int kPiece = 512;  // tokens of a block
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
              const int* __restrict__ lengths, const bf16* k, const bf16* v, float* __restrict__ pieces,
              float* __restrict__ weights, int64_t n, int hq, int hk, float factor) {
  __shared__ float tops[kAttentionWarps][kGroup], sums[kAttentionWarps][kGroup],
      parts[kAttentionWarps][kGroup][kDim];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % kLanes * 8, group = hq / hk;
  const int64_t head = blockIdx.y, s = blockIdx.z, first = s * hq + head * group;
  const int length = lengths[s], begin = blockIdx.x * kPiece, end = min(length + 1, begin + kPiece);
  if (begin >= end) return;
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
  for (int token = begin + threadIdx.x / kLanes; token - lane / kLanes < end; token += kSteps * kTokens) {
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
      const bool exists = token + i * kTokens < end;
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
    const int64_t place = (s * gridDim.x + blockIdx.x) * hq + head * group + g;
    pieces[place * kDim + x] = result / total;
    if (x == 0) weights[place] = highest + log2f(total);
  }
}

/// The mean of a sequence's pieces, by the sums of their exponentials; a thread for an element of o.
__global__ void __launch_bounds__(kDim)
    merge(const float* __restrict__ pieces, const float* __restrict__ weights,
          const int* __restrict__ lengths, bf16* __restrict__ o, int most) {
  const int64_t h = blockIdx.x, hq = gridDim.x, s = blockIdx.y;
  const int count = lengths[s] / kPiece + 1;  // with the new token
  const auto place_of = [&](int i) { return (s * most + i) * hq + h; };
  float top = -INFINITY, total = 0, value = 0;
  for (int i = 0; i < count; ++i) top = fmaxf(top, weights[place_of(i)]);
#pragma unroll 4
  for (int i = 0; i < count; ++i) {
    const float weight = exp2f(weights[place_of(i)] - top);
    total += weight;
    value += weight * pieces[place_of(i) * kDim + threadIdx.x];
  }
  o[(s * hq + h) * kDim + threadIdx.x] = __float2bfloat16(value / total);
}

int64_t most_pieces(int64_t n) { return n / kPiece + 1; }

void attend(const bf16* q, const bf16* k_cache, const bf16* v_cache, const int* lengths, const bf16* k,
            const bf16* v, float* pieces, float* weights, bf16* o, int64_t b, int64_t n, int64_t hq,
            int64_t hk, cudaStream_t stream) {
  const int64_t group = hq / hk;
  const auto kernel = group <= 1   ? attention<1>
                      : group <= 2 ? attention<2>
                      : group <= 4 ? attention<4>
                                   : attention<kMostGroup>;
  const float factor =
      static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim)));  // exponentials to the base 2
  const auto most = static_cast<unsigned>(most_pieces(n));
  kernel<<<dim3(most, static_cast<unsigned>(hk), static_cast<unsigned>(b)), kAttentionThreads, 0, stream>>>(
      q, k_cache, v_cache, lengths, k, v, pieces, weights, n, static_cast<int>(hq), static_cast<int>(hk),
      factor);
  merge<<<dim3(static_cast<unsigned>(hq), static_cast<unsigned>(b)), kDim, 0, stream>>>(
      pieces, weights, lengths, o, static_cast<int>(most));
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
  bf16 *q, *o, *r, *h;
  float *pieces, *weights;

  Workspace(void* workspace, int64_t rows, int64_t hidden, int64_t f, int64_t pieces_of_each) {
    Pieces memory{static_cast<uint8_t*>(workspace)};
    table = memory.next<float2>(rows * (kDim / 2));
    q = memory.next<bf16>(rows * hidden), o = memory.next<bf16>(rows * hidden),
    r = memory.next<bf16>(rows * hidden);
    h = memory.next<bf16>(rows * f);
    pieces = memory.next<float>(rows * pieces_of_each * hidden),
    weights = memory.next<float>(rows * pieces_of_each * (hidden / kDim));
    bytes = memory.used;
  }
};

extern "C" size_t workspace_bytes(int64_t b, int64_t hq, int64_t /*hk*/, int64_t f, int64_t n) {
  return Workspace(nullptr, b, hq * kDim, f, most_pieces(n)).bytes;
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
  const Workspace w(workspace, b, hidden, f, most_pieces(n));
  make_table<<<static_cast<unsigned>(b), kDim / 2, 0, stream>>>(w.table, lengths, theta);
  multiply(x, g_1, w_qkv, Heads{w.table, w.q, k, v, static_cast<int>(hq), static_cast<int>(hk)}, eps, b,
           hidden, heads * kDim, heads * 4, stream);
  attend(w.q, k_cache, v_cache, lengths, k, v, w.pieces, w.weights, w.o, b, n, hq, hk, stream);
  multiply(w.o, nullptr, w_o, Residual{x, w.r, static_cast<int>(hidden)}, eps, b, hidden, hidden, hq * 4,
           stream);
  multiply(w.r, g_2, w_gu, Gated{w.h, static_cast<int>(f)}, eps, b, hidden, 2 * f, (f + 15) / 16, stream);
  multiply(w.h, nullptr, w_down, Residual{w.r, y, static_cast<int>(hidden)}, eps, b, f, hidden, hq * 4,
           stream);
}
