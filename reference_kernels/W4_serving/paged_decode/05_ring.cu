// Rung 5: a ring of tiles by bulk copies, products on tensor cores.
//
// Changed     rung 4, but a block works for eight heads of k at once, a warp each, on tiles of 16 tokens.
//             One more warp asks the copy engine for the tiles: a token's row of all eight heads is one bulk
//             copy. Three tiles are on their way. The heads of q that share a head of k are the rows of one
//             product on tensor cores; the weights go into the second product as they leave the first.
//             There are as many pieces as fill the multiprocessors once.
// Why         in rung 4 the bytes in flight are those that registers can hold, and each number of k and v
//             costs a conversion and several multiplications, in the warps that should ask for the next.
// Prediction  one sequence: 1.5x rung 4. Sequences of equal length: 1.3x. The measured size: as rung 4,
//             since the longest sequence has as many blocks as the shortest.
// Came        250 us on an H100, 2148 GB/s, 1.16 times the rung before. 930 % of the native baseline.
//
// Shapes      q, o [b, hq, d]; k_cache, v_cache [b * max_pages, page, hk, d]; page_table [b, max_pages];
//             lengths [b].
// Launch      <<<(pieces of a sequence, b, groups of 8 heads of k), 288>>>, then <<<(hq, b), 256>>>.
// Resources   up to 128 registers; 198 KB of shared memory, one block per multiprocessor; workspace
//             4 (d + 1) bytes for each piece and head of q.
// Cost        4 sum(lengths) hq d FLOPs; 4 sum(lengths) hk d bytes, and the pieces twice.
// Divides     d is 64 or 128, at most 8 heads of q for one of k (the problem says so).
// Source      this project. Bulk copies and mbarriers need a GPU of compute capability 9.0.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kTokens = 16;  // of a tile
constexpr int kStages = 3;   // tiles on their way
constexpr int kHeads = 8;    // of k, for a block: a warp each
constexpr int kThreads = 32 * (kHeads + 1);
constexpr int kMergeThreads = 256, kMergeWarps = kMergeThreads / 32;

struct Problem {
  const __nv_bfloat16 *q, *k, *v;
  const int *table, *lengths;
  __nv_bfloat16* o;
  float* pieces;   // [b, pieces, hq, d]: results of parts of a sequence
  float* weights;  // [b, pieces, hq]: log2 of the sum of their exponentials
  int b, hq, hk, page, max_pages;

  __host__ __device__ int group() const { return hq / hk; }
};

template <int kDim>
struct Ring {
  static constexpr int kRow =
      kHeads * kDim * 2 + 16;  // [B] 16 more than a token has: rows shift by four banks
  static constexpr int kTile = kTokens * kRow;
  static constexpr int kBytes = kStages * 2 * kTile;
};

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
__device__ void multiply(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, "
      "%2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ uint32_t pair(float a, float b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ---- the two roles ----------------------------------------------------------------------------------------
struct Barriers {
  uint64_t full[kStages], empty[kStages];
};

/// Tiles begin to end of a sequence.
template <int kDim>
__device__ void produce(const Problem& p, char* ring, Barriers& bars, int s, int length, int begin, int end) {
  const int lane = threadIdx.x % 32, within = lane % kTokens, head = blockIdx.z * kHeads;
  const int bytes = min(kHeads, p.hk - head) * kDim * 2;
  const __nv_bfloat16* const cache = (lane < kTokens ? p.k : p.v) + int64_t{head} * kDim;
  // Where this lane's token of a tile lies; -1: the sequence has ended.
  const auto row_of = [&](int tile) -> int64_t {
    const int token = tile * kTokens + within;
    if (tile >= end || token >= length) return -1;
    return int64_t{p.table[int64_t{s} * p.max_pages + token / p.page]} * p.page + token % p.page;
  };
  int64_t row = row_of(begin);
  for (int tile = begin, stage = 0, phase = 1; tile < end; ++tile) {
    const int64_t next = row_of(tile + 1);  // its page is asked for before this tile's copies
    wait(&bars.empty[stage], phase);
    const unsigned valid = __ballot_sync(kAllLanes, row >= 0);
    if (lane == 0) arrive_and_expect(&bars.full[stage], __popc(valid) * bytes);
    __syncwarp();
    char* const to = ring + (stage * 2 + lane / kTokens) * Ring<kDim>::kTile + within * Ring<kDim>::kRow;
    if (row >= 0) copy_bulk(to, cache + row * p.hk * kDim, bytes, &bars.full[stage]);
    row = next;
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
}

/// One head of k and its heads of q, for a piece of one sequence.
template <int kDim>
struct Piece {
  static constexpr int kSteps = kDim / 16;
  uint32_t q[kSteps][2];           // heads of q by rows, lane / 4
  float o[kSteps][4] = {};         // transposed: 16 of kDim by 8 heads of q
  float top = -INFINITY, sum = 0;  // of head lane / 4; the sum of this lane's tokens

  __device__ Piece(const Problem& p, int s, int head) {
    const int lane = threadIdx.x % 32, mine = lane / 4;
    const __nv_bfloat16* from = p.q + (int64_t{s} * p.hq + int64_t{head} * p.group() + mine) * kDim;
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
    constexpr int kRow = Ring<kDim>::kRow;
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
    const uint32_t early = pair(e[0], e[1]), late = pair(e[2], e[3]);
    row = v + place;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      uint32_t values[4];
      load_transposed(values, row + i * 32);
      multiply(o[i], values[0], values[1], values[2], values[3], early, late);
    }
  }

  /// To o if the piece is the whole sequence (place -1), else to a place of its own.
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

template <int kDim>
__device__ void consume(const Problem& p, const char* ring, Barriers& bars, int s, int length, int begin,
                        int end, int place, float factor) {
  const int warp = threadIdx.x / 32, head = blockIdx.z * kHeads + warp;
  if (head >= p.hk) return;
  Piece<kDim> piece(p, s, head);
  for (int tile = begin, stage = 0, phase = 0; tile < end; ++tile) {
    wait(&bars.full[stage], phase);
    const char* k = ring + stage * 2 * Ring<kDim>::kTile + warp * kDim * 2;
    piece.take(k, k + Ring<kDim>::kTile, length - tile * kTokens, factor);
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(&bars.empty[stage]);
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
  piece.store(p, s, head, place, factor);
}

template <int kDim>
__global__ void __launch_bounds__(kThreads, 1) decode(const Problem p, float factor) {
  extern __shared__ __align__(128) char ring[];
  __shared__ Barriers bars;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i)
      init(&bars.full[i], 1), init(&bars.empty[i], min(kHeads, p.hk - static_cast<int>(blockIdx.z) * kHeads));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int s = blockIdx.y, pieces = gridDim.x, length = p.lengths[s],
            tiles = (length + kTokens - 1) / kTokens;
  const int begin = static_cast<int>(int64_t{tiles} * blockIdx.x / pieces);
  const int end = static_cast<int>(int64_t{tiles} * (blockIdx.x + 1) / pieces);
  const int place = s * pieces + static_cast<int>(blockIdx.x);
  // A piece without tokens has no weight; its result is never read.
  for (int h = threadIdx.x; begin == end && h < p.hq; h += kThreads)
    p.weights[int64_t{place} * p.hq + h] = -INFINITY;
  if (begin == end) return;
  if (threadIdx.x / 32 == kHeads)
    produce<kDim>(p, ring, bars, s, length, begin, end);
  else
    consume<kDim>(p, ring, bars, s, length, begin, end, place, factor);
}

/// A block for a sequence and a head of q: the weighted mean of the pieces, or zeros where there is no token.
template <int kDim>
__global__ void __launch_bounds__(kMergeThreads) merge(const Problem p, int pieces) {
  __shared__ float tops[kMergeWarps], sums[kMergeWarps], parts[kMergeWarps][kDim];
  const int h = blockIdx.x, s = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr int kWide = kDim / 32;
  float top = -INFINITY, sum = 0, mine[kWide] = {};
  for (int i = warp; i < pieces; i += kMergeWarps) {
    const int64_t place = (int64_t{s} * pieces + i) * p.hq + h;
    const float weight = p.weights[place];
    if (weight == -INFINITY) continue;
    const float next = fmaxf(top, weight), shrink = power_of_two(top - next),
                grow = power_of_two(weight - next);
    top = next;
    sum = sum * shrink + grow;
#pragma unroll
    for (int x = 0; x < kWide; ++x)
      mine[x] = mine[x] * shrink + p.pieces[place * kDim + lane * kWide + x] * grow;
  }
  if (lane == 0) tops[warp] = top, sums[warp] = sum;
#pragma unroll
  for (int x = 0; x < kWide; ++x) parts[warp][lane * kWide + x] = mine[x];
  __syncthreads();
  if (threadIdx.x >= kDim) return;
  float highest = -INFINITY, total = 0, value = 0;
  for (int w = 0; w < kMergeWarps; ++w) highest = fmaxf(highest, tops[w]);
  for (int w = 0; w < kMergeWarps; ++w) {
    if (sums[w] == 0) continue;  // a warp without a piece
    const float grow = power_of_two(tops[w] - highest);
    total += sums[w] * grow;
    value += parts[w][threadIdx.x] * grow;
  }
  p.o[(int64_t{s} * p.hq + h) * kDim + threadIdx.x] = __float2bfloat16(total > 0 ? value / total : 0.0f);
}

int processors() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}
int64_t groups_of(int64_t hk) { return (hk + kHeads - 1) / kHeads; }
/// As many pieces as fill the multiprocessors once.
int64_t pieces_of(int64_t b, int64_t hk) { return std::max<int64_t>(1, processors() / (b * groups_of(hk))); }

extern "C" size_t workspace_bytes(int64_t b, int64_t hq, int64_t d, int64_t /*max_pages*/, int64_t /*page*/,
                                  int64_t hk) {
  return static_cast<size_t>(b * pieces_of(b, hk) * hq * (d + 1)) * sizeof(float);
}

template <int kDim>
void launch_for(const Problem& p, cudaStream_t stream) {
  const auto pieces = static_cast<unsigned>(pieces_of(p.b, p.hk)), sequences = static_cast<unsigned>(p.b);
  cudaFuncSetAttribute(decode<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, Ring<kDim>::kBytes);
  const float factor =
      1.4426950408889634f / std::sqrt(static_cast<float>(kDim));  // exponentials to the base 2
  decode<kDim><<<dim3(pieces, sequences, static_cast<unsigned>(groups_of(p.hk))), kThreads,
                 Ring<kDim>::kBytes, stream>>>(p, factor);
  merge<kDim><<<dim3(static_cast<unsigned>(p.hq), sequences), kMergeThreads, 0, stream>>>(
      p, static_cast<int>(pieces));
}

extern "C" void launch(const __nv_bfloat16* q /*[b,hq,d]*/,
                       const __nv_bfloat16* k_cache /*[b * max_pages,page,hk,d]*/,
                       const __nv_bfloat16* v_cache /*[b * max_pages,page,hk,d]*/,
                       const int32_t* page_table /*[b,max_pages]*/, const int32_t* lengths /*[b]*/,
                       __nv_bfloat16* o /*[b,hq,d]*/, int64_t b, int64_t hq, int64_t d, int64_t max_pages,
                       int64_t page, int64_t hk, void* workspace, cudaStream_t stream) {
  float* const pieces = static_cast<float*>(workspace);
  const Problem p{q,
                  k_cache,
                  v_cache,
                  page_table,
                  lengths,
                  o,
                  pieces,
                  pieces + b * pieces_of(b, hk) * hq * d,
                  static_cast<int>(b),
                  static_cast<int>(hq),
                  static_cast<int>(hk),
                  static_cast<int>(page),
                  static_cast<int>(max_pages)};
  (d == 64 ? launch_for<64> : launch_for<128>)(p, stream);
}
