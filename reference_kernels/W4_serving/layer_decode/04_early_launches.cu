// Rung 4: a kernel asks for its weights before the kernel in front has ended.
//
// Changed     programmatic launches: each kernel lets the next one begin at once, and that one loads what
//             no kernel makes (its first weights, the cache) before it waits. Attention is paged_decode's
//             last rung without pages: equal shares of all tiles, found on the device, bulk copies,
//             tensor cores. The rotation's angles are computed where they are used: no kernel for a
//             table.
// Why         between two kernels of rung 3 the memory bus has nothing to do: the last block ends, a
//             launch, the first loads' latency, six times. And its attention is bound by instructions,
//             not by bytes.
// Prediction  six gaps of 4 us; attention at 85 % of a copy, 105 us instead of 135: 1.2x rung 3.
// Came        300 us on an H100, 2352 GB/s, 1.22 times the rung before. 117 % of the native baseline.
//
// Shapes      x, y [b, hidden], hidden = 128 hq; weights [outputs, inputs]; caches [b, n, hk, 128]; k, v
//             [b, hk, 128]; bf16.
// Launch      products: 256 threads for 32 or 64 rows of w and 16 of x; attention: 288 threads a
//             multiprocessor; merge: 256 threads for one or eight heads of q of a sequence.
// Resources   products: at most 128 registers (255 for w_gu), 33 KB of shared memory; attention: 198 KB;
//             workspace: 2 b (3 hidden + f) bytes and two pieces of 516 bytes a head for each block of
//             attention.
// Cost        2 b hidden (2 hidden + 256 hk + 3 f) + 512 hq sum(lengths) FLOPs; the weights and the
//             cache, once.
// Divides     f % 8 == 0, hq % hk == 0, at most 8 heads of q for one of k, b <= 4096 (the problem says
//             so).
// Source      programmatic dependent launch: CUDA C++ Programming Guide (NVIDIA, 2023); paged_decode's
//             rung 6. Needs a GPU of compute capability 9.0.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

using bf16 = __nv_bfloat16;

constexpr int kDim = 128;  // of a head
constexpr unsigned kAllLanes = 0xffffffffu;

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

// ---- barriers and copies ----------------------------------------------------------------------------------
__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals) : "memory");
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
__device__ void copy_bulk(void* to, const void* from, int bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          address(to)),
      "l"(from), "r"(bytes), "r"(address(barrier))
      : "memory");
}
/// Every kernel lets the next one begin at once. That one may ask for what no kernel makes (weights, the
/// cache), then waits until this one has ended. So each kernel in front has waited for the one before.
__device__ void let_next_kernel_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait_for_kernel_in_front() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// ---- tensor cores -----------------------------------------------------------------------------------------
__device__ void load_matrices(uint32_t (&r)[4], const char* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
__device__ void load_transposed(uint32_t (&r)[4], const char* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
__device__ void multiply(float* d, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ---- the product of few rows: epilogue(x w^T) -------------------------------------------------------------
constexpr int kWarps = 8, kProductThreads = 32 * kWarps;
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
  const int* lengths;
  float theta;
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
    float2 turn = make_float2(1, 0);
    if (head < hq + hk) {  // the angle is a double: a float of 8192 radians has lost 12 bits
      const double turns =
          lengths[token] * exp2(c * (-2.0 / kDim) * log2(static_cast<double>(theta))) / (2 * M_PI);
      sincosf(static_cast<float>((turns - rint(turns)) * (2 * M_PI)), &turn.y, &turn.x);
    }
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
__global__ void __launch_bounds__(kProductThreads, Epilogue::kPairs == 1 ? 2 : 1)
    product(const bf16* __restrict__ x, const bf16* __restrict__ gain, const bf16* __restrict__ w,
            Epilogue epilogue, float eps, int m, int k, int n) {
  constexpr int kGroups = 2 * Epilogue::kPairs, kAhead = 4 / kGroups;  // 16 rows each; chunks on their way
  constexpr int kResults = 16 * 8 * kHalves;                           // of a group
  __shared__ float partial[kWarps][kGroups][kResults], square_of[kWarps][kMostRows];
  let_next_kernel_begin();
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
  wait_for_kernel_in_front();  // x is there; weights are on their way
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
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
          multiply(d[g][half], above.x, below.x, above.y, below.y, b[half].x, b[half].y);
          multiply(d[g][half], above.z, below.z, above.w, below.w, b[half].z, b[half].w);
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
  for (int i = threadIdx.x; i < kResults * Epilogue::kPairs; i += kProductThreads) {
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

// ---- attention: equal shares of all tiles of all sequences ------------------------------------------------
constexpr int kTokens = 16;  // of a tile
constexpr int kStages = 3;   // tiles on their way
constexpr int kHeads = 8;    // of k, for a block: a warp each
constexpr int kThreads = 32 * (kHeads + 1);
constexpr int kMergeThreads = 256, kMergeWarps = kMergeThreads / 32;

/// A sequence has its cache and the new token behind it.
struct Problem {
  const bf16 *q, *k_cache, *v_cache, *k, *v;
  const int* lengths;
  bf16* o;
  float* pieces;   // [2 * blocks, hq, 128]: results of parts of a sequence
  float* weights;  // [2 * blocks, hq]: log2 of the sum of their exponentials
  int b, hq, hk;
  int64_t n;

  __host__ __device__ int group() const { return hq / hk; }
};
constexpr int kRow = kHeads * kDim * 2 + 16;  // [B] 16 more than a token has: rows shift by four banks
constexpr int kTile = kTokens * kRow, kRingBytes = kStages * 2 * kTile;

/// The tiles of all sequences in one row; a block's share of them. No share is empty: of more blocks than
/// tiles, only as many take part as there are tiles.
__device__ int sharers(int tiles, int blocks) { return min(tiles, blocks); }
__device__ int first_tile(int tiles, int block, int sharers) {
  return static_cast<int>(int64_t{tiles} * block / sharers);
}
/// Which block a tile belongs to.
__device__ int block_of(int tile, int tiles, int sharers) {
  return static_cast<int>(((int64_t{tile} + 1) * sharers - 1) / tiles);
}
__device__ int tiles_of(int length) { return (length + kTokens - 1) / kTokens; }

/// starts[s]: the tiles of the sequences before s. By one warp.
__device__ void add_up_tiles(int* starts, const int* lengths, int b) {
  const int lane = threadIdx.x % 32;
  int before = 0;
  for (int first = 0; first < b; first += 32) {
    int sum = first + lane < b ? tiles_of(lengths[first + lane] + 1) : 0;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int below = __shfl_up_sync(kAllLanes, sum, offset);
      if (lane >= offset) sum += below;
    }
    if (first + lane < b) starts[first + lane + 1] = before + sum;
    before += __shfl_sync(kAllLanes, sum, 31);
  }
  if (lane == 0) starts[0] = 0;
}
__device__ int sequence_of(const int* starts, int tile, int b) {
  int low = 0, high = b;  // starts[low] <= tile < starts[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (starts[middle] <= tile ? low : high) = middle;
  }
  return low;
}

struct Barriers {
  uint64_t full[kStages], empty[kStages];
};

/// Tokens of the cache are asked for before the kernel in front has ended; the new ones after.
__device__ void produce(const Problem& p, char* ring, Barriers& bars, const int* starts, int begin, int end) {
  const int lane = threadIdx.x % 32, within = lane % kTokens, head = blockIdx.y * kHeads;
  const int bytes = min(kHeads, p.hk - head) * kDim * 2;
  const bf16* const cache = (lane < kTokens ? p.k_cache : p.v_cache) + int64_t{head} * kDim;
  const bf16* const made = (lane < kTokens ? p.k : p.v) + int64_t{head} * kDim;
  int s = sequence_of(starts, begin, p.b), length = p.lengths[s];
  for (int tile = begin, stage = 0, phase = 1; tile < end; ++tile) {
    while (tile >= starts[s + 1]) length = p.lengths[++s];
    const int token = (tile - starts[s]) * kTokens + within;
    wait(&bars.empty[stage], phase);
    const unsigned valid = __ballot_sync(kAllLanes, token <= length);
    if (__any_sync(kAllLanes, token == length)) wait_for_kernel_in_front();
    if (lane == 0) arrive_and_expect(&bars.full[stage], __popc(valid) * bytes);
    __syncwarp();
    char* const to = ring + (stage * 2 + lane / kTokens) * kTile + within * kRow;
    if (token <= length)
      copy_bulk(to,
                token < length ? cache + (s * p.n + token) * p.hk * kDim : made + int64_t{s} * p.hk * kDim,
                bytes, &bars.full[stage]);
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
}

/// One head of k and its heads of q, for a piece of one sequence.
struct Piece {
  static constexpr int kSteps = kDim / 16;
  uint32_t q[kSteps][2];           // heads of q by rows, lane / 4
  float o[kSteps][4] = {};         // transposed: 16 of kDim by 8 heads of q
  float top = -INFINITY, sum = 0;  // of head lane / 4; the sum of this lane's tokens

  __device__ Piece(const Problem& p, int s, int head) {
    const int lane = threadIdx.x % 32, mine = lane / 4;
    const bf16* from = p.q + (int64_t{s} * p.hq + int64_t{head} * p.group() + mine) * kDim;
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        q[i][half] = mine < p.group()
                         ? *reinterpret_cast<const uint32_t*>(from + i * 16 + half * 8 + lane % 4 * 2)
                         : 0;
  }

  /// A tile of k and v of this head; tokens from `valid` on do not exist.
  __device__ void take(const char* k, const char* v, int valid, float factor) {
    const int lane = threadIdx.x % 32, at = lane % 4 * 2;
    float s[2][4] = {};
    // A lane names a row of the tile. Behind the last token it names that one: its score is masked, its value
    // multiplied by zero. What lies there instead may be a NaN, and zero times NaN is one.
    const int place = min(lane % 8 + lane / 16 * 8, valid - 1) * kRow + lane / 8 % 2 * 16;
    const char* row = k + place;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      uint32_t keys[4];
      load_matrices(keys, row + i * 32);
      multiply(s[0], q[i][0], 0, q[i][1], 0, keys[0], keys[1]);
      multiply(s[1], q[i][0], 0, q[i][1], 0, keys[2], keys[3]);
    }
    const float w[4] = {at < valid ? s[0][0] : -INFINITY, at + 1 < valid ? s[0][1] : -INFINITY,
                        at + 8 < valid ? s[1][0] : -INFINITY, at + 9 < valid ? s[1][1] : -INFINITY};
    float highest = fmaxf(fmaxf(w[0], w[1]), fmaxf(w[2], w[3]));
    highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 2));
    if (__any_sync(kAllLanes, highest > top)) {
      const float next = fmaxf(top, highest), shrink = power_of_two((top - next) * factor);
      top = next;
      sum *= shrink;
      const float even = __shfl_sync(kAllLanes, shrink, lane % 4 * 8),
                  odd = __shfl_sync(kAllLanes, shrink, lane % 4 * 8 + 4);
#pragma unroll
      for (auto& part : o) part[0] *= even, part[1] *= odd, part[2] *= even, part[3] *= odd;
    }
    float e[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) e[i] = power_of_two((w[i] - top) * factor);
    sum += (e[0] + e[1]) + (e[2] + e[3]);
    const uint32_t early = pack(e[0], e[1]), late = pack(e[2], e[3]);
    row = v + place;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      uint32_t values[4];
      load_transposed(values, row + i * 32);
      multiply(o[i], values[0], values[1], values[2], values[3], early, late);
    }
  }

  /// To o if the piece is the whole sequence, else to a place of its own.
  __device__ void store(const Problem& p, int s, int head, int place, float factor) {
    const int lane = threadIdx.x % 32, mine = lane / 4;
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    const int first = head * p.group();
    if (place >= 0 && lane % 4 == 0 && mine < p.group())
      p.weights[int64_t{place} * p.hq + first + mine] = top * factor + log2f(sum);
    const float inverse = 1 / sum;
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const float scale = __shfl_sync(kAllLanes, inverse, lane % 4 * 8 + odd * 4);
      const int h = lane % 4 * 2 + odd;
      if (h >= p.group()) continue;
      const int64_t to = ((place >= 0 ? int64_t{place} : int64_t{s}) * p.hq + first + h) * kDim + mine;
#pragma unroll
      for (int i = 0; i < kSteps; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float value = o[i][half * 2 + odd] * scale;
          if (place >= 0)
            p.pieces[to + i * 16 + half * 8] = value;
          else
            p.o[to + i * 16 + half * 8] = __float2bfloat16(value);
        }
    }
  }
};

__device__ void consume(const Problem& p, const char* ring, Barriers& bars, const int* starts, int begin,
                        int end, float factor) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, head = blockIdx.y * kHeads + warp;
  if (head >= p.hk) return;
  int stage = 0, phase = 0;
  wait_for_kernel_in_front();
  for (int tile = begin; tile < end;) {
    const int s = sequence_of(starts, tile, p.b), length = p.lengths[s] + 1;
    const int last = min(end, starts[s + 1]);
    const bool whole = tile == starts[s] && last == starts[s + 1];
    const int place = whole ? -1 : 2 * static_cast<int>(blockIdx.x) + (tile > begin);
    Piece piece(p, s, head);
    for (; tile < last; ++tile) {
      wait(&bars.full[stage], phase);
      const char* k = ring + stage * 2 * kTile + warp * kDim * 2;
      piece.take(k, k + kTile, length - (tile - starts[s]) * kTokens, factor);
      __syncwarp();
      if (lane == 0) arrive(&bars.empty[stage]);
      if (++stage == kStages) stage = 0, phase ^= 1;
    }
    piece.store(p, s, head, place, factor);
  }
}

__global__ void __launch_bounds__(kThreads, 1) attention(const Problem p, float factor) {
  extern __shared__ __align__(128) char shared[];
  __shared__ Barriers bars;
  int* const starts = reinterpret_cast<int*>(shared + kRingBytes);
  let_next_kernel_begin();
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i)
      init(&bars.full[i], 1), init(&bars.empty[i], min(kHeads, p.hk - static_cast<int>(blockIdx.y) * kHeads));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (threadIdx.x / 32 == kHeads) add_up_tiles(starts, p.lengths, p.b);
  __syncthreads();
  const int tiles = starts[p.b], blocks = sharers(tiles, gridDim.x), block = blockIdx.x;
  if (block >= blocks) return;
  const int begin = first_tile(tiles, block, blocks), end = first_tile(tiles, block + 1, blocks);
  if (threadIdx.x / 32 == kHeads)
    produce(p, shared, bars, starts, begin, end);
  else
    consume(p, shared, bars, starts, begin, end, factor);
}

/// kWarps warps for a sequence and a head of q: the weighted mean of the pieces, or zeros where there is no
/// token.
template <int kWarps>
__global__ void __launch_bounds__(kMergeThreads) merge(const Problem p, int most_blocks) {
  let_next_kernel_begin();
  extern __shared__ int starts[];
  constexpr int kWide = kDim / 32;
  __shared__ float sums[kMergeWarps], parts[kMergeWarps][kDim];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, s = blockIdx.y;
  const int h = blockIdx.x * (kMergeWarps / kWarps) + warp / kWarps;
  if (warp == 0) add_up_tiles(starts, p.lengths, p.b);
  __syncthreads();
  const int tiles = starts[p.b], begin = starts[s], end = starts[s + 1], blocks = sharers(tiles, most_blocks);
  const int first = begin < end ? block_of(begin, tiles, blocks) : 0;
  const int pieces = begin < end ? block_of(end - 1, tiles, blocks) - first + 1 : 0;
  wait_for_kernel_in_front();
  if (pieces == 1) return;  // the block has written the result itself
  // In the first block another sequence may lie in front.
  const bool second = pieces > 0 && first_tile(tiles, first, blocks) < begin;
  const auto place_of = [&](int i) { return (int64_t{2} * (first + i) + (i == 0 && second)) * p.hq + h; };
  float top = -INFINITY, sum = 0;
  struct alignas(kWide * 4) Part {
    float x[kWide];
  } mine{};
  if (h < p.hq) {
    for (int i = lane; i < pieces; i += 32) top = fmaxf(top, p.weights[place_of(i)]);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, offset));
#pragma unroll 4  // loads that do not wait for one another
    for (int i = warp % kWarps; i < pieces; i += kWarps) {
      const float weight = power_of_two(p.weights[place_of(i)] - top);
      const Part piece = reinterpret_cast<const Part*>(p.pieces + place_of(i) * kDim)[lane];
      sum += weight;
#pragma unroll
      for (int x = 0; x < kWide; ++x) mine.x[x] += weight * piece.x[x];
    }
  }
  if (lane == 0) sums[warp] = sum;
#pragma unroll
  for (int x = 0; x < kWide; ++x) parts[warp][lane * kWide + x] = mine.x[x];
  __syncthreads();
  if (h >= p.hq || warp % kWarps != 0) return;
  float total = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) total += sums[warp + w];
#pragma unroll
  for (int x = 0; x < kWide; ++x) {
    float value = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) value += parts[warp + w][x * 32 + lane];
    p.o[(int64_t{s} * p.hq + h) * kDim + x * 32 + lane] = __float2bfloat16(pieces > 0 ? value / total : 0.0f);
  }
}

// ---- the layer --------------------------------------------------------------------------------------------
int processors() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}
int64_t groups_of(int64_t hk) { return (hk + kHeads - 1) / kHeads; }
int64_t blocks_of(int64_t hk) { return std::max<int64_t>(1, processors() / groups_of(hk)); }

/// A launch that begins when all blocks of the kernel in front have begun.
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared, cudaStream_t stream,
                  const Arguments&... arguments) {
  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

/// `pairs`: of 16 rows of w each. The first kernel of the layer waits for everything that was launched
/// before.
template <class Epilogue>
void multiply(bool first, const bf16* x, const bf16* gain, const bf16* w, const Epilogue& epilogue, float eps,
              int64_t m, int64_t k, int64_t n, int64_t pairs, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((pairs + Epilogue::kPairs - 1) / Epilogue::kPairs),
                  static_cast<unsigned>((m + kMostRows - 1) / kMostRows));
  const auto kernel = m <= 8 ? product<Epilogue, 1> : product<Epilogue, 2>;
  if (first)
    kernel<<<grid, kProductThreads, 0, stream>>>(x, gain, w, epilogue, eps, static_cast<int>(m),
                                                 static_cast<int>(k), static_cast<int>(n));
  else
    launch_early(kernel, grid, kProductThreads, 0, stream, x, gain, w, epilogue, eps, m, k, n);
}
void attend(const Problem& p, cudaStream_t stream) {
  const int blocks = static_cast<int>(blocks_of(p.hk));
  const size_t starts = static_cast<size_t>(4 * (p.b + 1)), bytes = kRingBytes + starts;
  cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  const float factor = static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim)));
  launch_early(attention, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(groups_of(p.hk))),
               kThreads, bytes, stream, p, factor);
  // Few sequences have many pieces each, and many sequences few: then a warp is enough for a head.
  const bool many = p.b * p.hq > 4 * blocks;
  const dim3 grid(static_cast<unsigned>(many ? (p.hq + kMergeWarps - 1) / kMergeWarps : p.hq),
                  static_cast<unsigned>(p.b));
  launch_early(many ? merge<1> : merge<kMergeWarps>, grid, kMergeThreads, starts, stream, p, blocks);
}

/// The workspace, cut into pieces that start on 256 bytes.
struct Workspace {
  size_t bytes = 0;
  bf16 *q, *o, *r, *h;
  float *pieces, *weights;

  Workspace(void* workspace, int64_t b, int64_t hq, int64_t hk, int64_t f) {
    const auto piece = [&](auto*& to, int64_t count) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(static_cast<uint8_t*>(workspace) + bytes);
      bytes += (static_cast<size_t>(count) * sizeof(*to) + 255) / 256 * 256;
    };
    piece(q, b * hq * kDim), piece(o, b * hq * kDim), piece(r, b * hq * kDim), piece(h, b * f);
    piece(pieces, 2 * blocks_of(hk) * hq * kDim), piece(weights, 2 * blocks_of(hk) * hq);
  }
};

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
  const int64_t hidden = hq * kDim, heads = hq + 2 * hk;
  const Workspace w(workspace, b, hq, hk, f);
  multiply(true, x, g_1, w_qkv, Heads{lengths, theta, w.q, k, v, static_cast<int>(hq), static_cast<int>(hk)},
           eps, b, hidden, heads * kDim, heads * 4, stream);
  attend({w.q, k_cache, v_cache, k, v, lengths, w.o, w.pieces, w.weights, static_cast<int>(b),
          static_cast<int>(hq), static_cast<int>(hk), n},
         stream);
  multiply(false, w.o, nullptr, w_o, Residual{x, w.r, static_cast<int>(hidden)}, eps, b, hidden, hidden,
           hq * 4, stream);
  multiply(false, w.r, g_2, w_gu, Gated{w.h, static_cast<int>(f)}, eps, b, hidden, 2 * f, (f + 15) / 16,
           stream);
  multiply(false, w.h, nullptr, w_down, Residual{w.r, y, static_cast<int>(hidden)}, eps, b, f, hidden, hq * 4,
           stream);
}
