// Rung 6: every block has the same number of tiles, whatever the lengths are.
//
// Changed     rung 5, but a block's share is a range of all tiles of all sequences, which it finds by itself
//             from the lengths. It may begin in one sequence and end in another. The kernel that merges is
//             launched early (a programmatic launch) and waits for the pieces.
// Why         the host does not know the lengths. In rung 5 the longest sequence has as many blocks as the
//             shortest, and most multiprocessors wait for those blocks; then for the launch of a kernel.
// Prediction  measured size: 1.6x to 1.9x rung 5; 4.3 TB/s or more where a copy reaches 4.1.
// Came        204 us on an H100, 2640 GB/s, 1.23 times the rung before. 1143 % of the native baseline.
//
// Shapes      q, o [b, hq, d]; k_cache, v_cache [b * max_pages, page, hk, d]; page_table [b, max_pages];
//             lengths [b].
// Launch      <<<(blocks that fit at once, groups of 8 heads of k), 288>>>, then 256 threads for one or
//             eight heads of q of a sequence.
// Resources   up to 128 registers; 198 KB of shared memory and 4 bytes for a sequence, one block per
//             multiprocessor; workspace: two pieces a block.
// Cost        4 sum(lengths) hq d FLOPs; 4 sum(lengths) hk d bytes, and 8 (d + 1) for a piece and head of q.
// Divides     d is 64 or 128, at most 8 heads of q for one of k, at most 4096 sequences (the problem says
//             so).
// Source      T. Dao et al., "Flash-Decoding" (2023); a schedule by tiles as in FlashInfer, Z. Ye et al.
//             (2025), but made on the device. Bulk copies and mbarriers need compute capability 9.0.
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
  float* pieces;   // [2 * blocks, hq, d]: results of parts of a sequence
  float* weights;  // [2 * blocks, hq]: log2 of the sum of their exponentials
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

// ---- shares -----------------------------------------------------------------------------------------------
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
    int sum = first + lane < b ? tiles_of(lengths[first + lane]) : 0;
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

// ---- the two roles ----------------------------------------------------------------------------------------
struct Barriers {
  uint64_t full[kStages], empty[kStages];
};

template <int kDim>
__device__ void produce(const Problem& p, char* ring, Barriers& bars, const int* starts, int begin, int end) {
  const int lane = threadIdx.x % 32, within = lane % kTokens, head = blockIdx.y * kHeads;
  const int bytes = min(kHeads, p.hk - head) * kDim * 2;
  const __nv_bfloat16* const cache = (lane < kTokens ? p.k : p.v) + int64_t{head} * kDim;
  int s = sequence_of(starts, begin, p.b), length = p.lengths[s];
  // Where this lane's token of a tile lies; -1: the sequence has ended.
  const auto row_of = [&](int tile) -> int64_t {
    if (tile >= end) return -1;
    while (tile >= starts[s + 1]) length = p.lengths[++s];
    const int token = (tile - starts[s]) * kTokens + within;
    if (token >= length) return -1;
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

template <int kDim>
__device__ void consume(const Problem& p, const char* ring, Barriers& bars, const int* starts, int begin,
                        int end, float factor) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, head = blockIdx.y * kHeads + warp;
  if (head >= p.hk) return;
  int stage = 0, phase = 0;
  for (int tile = begin; tile < end;) {
    const int s = sequence_of(starts, tile, p.b), length = p.lengths[s];
    const int last = min(end, starts[s + 1]);
    const bool whole = tile == starts[s] && last == starts[s + 1];
    const int place = whole ? -1 : 2 * static_cast<int>(blockIdx.x) + (tile > begin);
    Piece<kDim> piece(p, s, head);
    for (; tile < last; ++tile) {
      wait(&bars.full[stage], phase);
      const char* k = ring + stage * 2 * Ring<kDim>::kTile + warp * kDim * 2;
      piece.take(k, k + Ring<kDim>::kTile, length - (tile - starts[s]) * kTokens, factor);
      __syncwarp();
      if (lane == 0) arrive(&bars.empty[stage]);
      if (++stage == kStages) stage = 0, phase ^= 1;
    }
    piece.store(p, s, head, place, factor);
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads, 1) decode(const Problem p, float factor) {
  extern __shared__ __align__(128) char shared[];
  __shared__ Barriers bars;
  int* const starts = reinterpret_cast<int*>(shared + Ring<kDim>::kBytes);
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
    produce<kDim>(p, shared, bars, starts, begin, end);
  else
    consume<kDim>(p, shared, bars, starts, begin, end, factor);
}

/// kWarps warps for a sequence and a head of q: the weighted mean of the pieces, or zeros where there is no
/// token.
template <int kDim, int kWarps>
__global__ void __launch_bounds__(kMergeThreads) merge(const Problem p, int most_blocks) {
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

int processors() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}
int64_t groups_of(int64_t hk) { return (hk + kHeads - 1) / kHeads; }
int64_t blocks_of(int64_t hk) { return std::max<int64_t>(1, processors() / groups_of(hk)); }

extern "C" size_t workspace_bytes(int64_t /*b*/, int64_t hq, int64_t d, int64_t /*max_pages*/,
                                  int64_t /*page*/, int64_t hk) {
  return static_cast<size_t>(2 * blocks_of(hk) * hq * (d + 1)) * sizeof(float);
}

template <int kDim>
void launch_fast(const Problem& p, cudaStream_t stream) {
  const int blocks = static_cast<int>(blocks_of(p.hk)), bytes = Ring<kDim>::kBytes + 4 * (p.b + 1);
  cudaFuncSetAttribute(decode<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const float factor = 1.4426950408889634f / std::sqrt(static_cast<float>(kDim));
  decode<kDim><<<dim3(blocks, static_cast<unsigned>(groups_of(p.hk))), kThreads, bytes, stream>>>(p, factor);
  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  // Few sequences have many pieces each, and many sequences few: then a warp is enough for a head.
  const bool many = p.b * p.hq > 4 * blocks;
  config.gridDim = dim3(static_cast<unsigned>(many ? (p.hq + kMergeWarps - 1) / kMergeWarps : p.hq),
                        static_cast<unsigned>(p.b));
  config.blockDim = dim3(kMergeThreads);
  config.dynamicSmemBytes = 4 * (p.b + 1);
  config.stream = stream;
  config.attrs = early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, many ? merge<kDim, 1> : merge<kDim, kMergeWarps>, p, blocks);
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
                  pieces + 2 * blocks_of(hk) * hq * d,
                  static_cast<int>(b),
                  static_cast<int>(hq),
                  static_cast<int>(hk),
                  static_cast<int>(page),
                  static_cast<int>(max_pages)};
  if (d == 128) launch_fast<128>(p, stream);
  if (d == 64) launch_fast<64>(p, stream);
}
