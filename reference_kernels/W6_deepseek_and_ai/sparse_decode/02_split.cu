// Rung 2: tensor cores, tokens gathered 16 bytes at a time while the tile before them is used, and lists in
// parts.
//
// Changed     64 heads a block, mma.sync on tiles of 64 tokens. The bytes of the next tile are copied
//             asynchronously, as they lie; one pass converts them to bf16. A block's share is a range of all
//             tiles of all lists; a second kernel, launched early, merges the parts of a list.
// Why         rung 1 is bound by instructions: tensor cores do 64 times as many products with one, and eight
//             times as many heads share a conversion. 128 blocks for 132 multiprocessors would leave some
//             idle, and 64 blocks half of them.
// Prediction  15x rung 1: 200 TFLOP/s, bound by the loads of operands from shared memory, with the conversion
//             in front of each tile.
// Came        963 us on an H100, 152 TFLOP/s, 18.6 times the rung before. 358 % of the native baseline.
//
// Shapes      q [b, s_q, h, 576]; cache [tokens, 656] bytes; indices [b, s_q, topk]; o [b, s_q, h, 512].
// Launch      as many blocks as multiprocessors, 256 threads; then 256 threads for eight heads of a list.
// Resources   up to 255 registers; 193 KB of shared memory; workspace: two pieces for each share, 2052 bytes
//             a head.
// Cost        2 h (576 + 512) FLOPs for each token of a list; a list is gathered and converted h / 64 times.
// Divides     h <= 128 and topk <= 4096 (the problem says so); nothing else.
// Source      T. Dao et al., "Flash-Decoding" (2023), for the parts. The early launch needs compute
//             capability 9.0.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kTokens = 64;              // of a tile
constexpr int kKey = 576, kValue = 512;  // columns of a token; the first ones are values, too
constexpr int kBytes = 656, kScales = 512, kPosition = 528;  // [B] of a token; where its parts begin
constexpr int kRows = 64;                                    // heads of a block
constexpr int kThreads = 256, kMergeThreads = 256, kMergeWarps = kMergeThreads / 32;
constexpr int kPanel = 64 * 128;  // [B]: 64 rows of 64 columns; 16-byte pieces are swizzled
constexpr int kTile = kKey / 64 * kPanel;
constexpr int kShared = 2 * kTile + kPanel + kTokens * kBytes;  // queries, a tile, weights, bytes to convert

struct Problem {
  const __nv_bfloat16* q;
  const uint8_t* cache;
  const int* indices;
  __nv_bfloat16* o;
  float* pieces;   // [2 * shares, h, 512]: results of parts of a list
  float* weights;  // [2 * shares, h]: log2 of the sum of their exponentials
  int lists, h, topk;
  int groups;  // of heads, one for a block
  int shares;  // of the tiles of all lists
  float factor;

  __host__ __device__ int tiles_each() const { return (topk + kTokens - 1) / kTokens; }
  __host__ __device__ int tiles() const { return lists * tiles_each(); }
  /// The first tile of a share. No share is empty.
  __host__ __device__ int first_tile(int share) const {
    return static_cast<int>(int64_t{tiles()} * share / shares);
  }
  /// Which share a tile belongs to.
  __host__ __device__ int share_of(int tile) const {
    return static_cast<int>(((int64_t{tile} + 1) * shares - 1) / tiles());
  }
};

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
/// 16 bytes, or zeros.
__device__ void copy_16(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to)), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kOnTheirWay>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOnTheirWay) : "memory");
}
__device__ void let_next_kernel_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait_for_kernel_in_front() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

__device__ void load_matrices(uint32_t (&r)[4], const uint8_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
__device__ void load_transposed(uint32_t (&r)[4], const uint8_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
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

/// The part of a list that lies in a share: its tiles first to last - 1, counted from the list's own first.
struct Segment {
  int list, first, last;
};
/// Walks over the segments of a share.
struct Walk {
  int each, left;  // tiles of a list; of the share that no segment has had
  Segment now;

  __device__ Walk(const Problem& p, int share) : each(p.tiles_each()) {
    const int begin = p.first_tile(share);
    left = p.first_tile(share + 1) - begin;
    now = {begin / each, begin % each, 0};
    fit();
  }
  __device__ bool more() const { return left > 0; }
  __device__ void next() {
    left -= now.last - now.first;
    now = {now.list + 1, 0, 0};
    fit();
  }
  __device__ bool whole() const { return now.first == 0 && now.last == each; }

 private:
  __device__ void fit() { now.last = min(each, now.first + left); }
};

// ---- one block's share ------------------------------------------------------------------------------------
/// Where 16 bytes lie, of a matrix in panels of 64 columns: eight rows have them in eight different banks.
__device__ uint8_t* place(uint8_t* matrix, int row, int piece) {
  return matrix + piece / 8 * kPanel + row * 128 + (piece % 8 ^ row % 8) * 16;
}
/// Two codes, times their scale, in bf16.
__device__ uint32_t convert(uint32_t codes, float scale) {
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(codes)));
  const float2 two = __half22float2(*reinterpret_cast<const __half2*>(&halves));
  return pair(two.x * scale, two.y * scale);
}
__device__ uint4 convert(uint2 codes, float scale) {
  return {convert(codes.x, scale), convert(codes.x >> 16, scale), convert(codes.y, scale),
          convert(codes.y >> 16, scale)};
}

/// Warp w computes the scores of 16 rows and 32 tokens, and has columns 64 w to 64 w + 63 of the result of
/// all 64 rows.
struct Block {
  const Problem& p;
  uint8_t* shared;
  float (*tops)[kRows];  // of each half of the tokens
  float (*sums)[kRows];
  float* shrinks;
  int (*there)[kTokens];  // whether a place of the list has a token: of this tile, of the next one
  const int first_row;
  float o[4][8][4];
  float top[2], sum[2];  // of rows row and row + 8

  __device__ uint8_t* queries() const { return shared; }
  __device__ uint8_t* tile() const { return shared + kTile; }
  __device__ uint8_t* weights() const { return shared + 2 * kTile; }
  __device__ uint8_t* gathered() const { return shared + 2 * kTile + kPanel; }
  __device__ int half_of_tokens() const { return threadIdx.x / 128; }
  __device__ int row() const { return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4; }

  __device__ void fetch_queries(int list) {
    constexpr int kPieces = kKey / 8;
    const __nv_bfloat16* const from = p.q + (int64_t{list} * p.h + first_row) * kKey;
    for (int i = threadIdx.x; i < kRows * kPieces; i += kThreads) {
      const int r = i / kPieces;
      const bool exists = first_row + r < p.h;
      copy_16(place(queries(), r, i % kPieces), from + (exists ? int64_t{i} * 8 : 0), exists);
    }
  }
  /// The bytes of a tile's tokens; zeros where the list has none.
  __device__ void gather(int list, int number) {
    constexpr int kPieces = kBytes / 16;
    const int first = number * kTokens;
    const int* const ids = p.indices + int64_t{list} * p.topk + first;
    for (int i = threadIdx.x; i < kTokens * kPieces; i += kThreads) {
      const int t = i / kPieces, piece = i % kPieces;
      const int id = first + t < p.topk ? ids[t] : -1;
      if (piece == 0) there[number % 2][t] = id >= 0;
      copy_16(gathered() + i * 16, p.cache + int64_t{max(id, 0)} * kBytes + piece * 16, id >= 0);
    }
    commit_copies();
  }
  /// From bytes to a tile in bf16.
  __device__ void convert_tile() {
    constexpr int kCodePieces = kValue / 16, kPositionPieces = (kKey - kValue) / 8;
    for (int i = threadIdx.x; i < kTokens * kCodePieces; i += kThreads) {
      const int t = i / kCodePieces, piece = i % kCodePieces;
      const uint8_t* const token = gathered() + t * kBytes;
      const uint4 codes = reinterpret_cast<const uint4*>(token)[piece];
      const float scale = reinterpret_cast<const float*>(token + kScales)[piece / 8];
      *reinterpret_cast<uint4*>(place(tile(), t, piece * 2)) = convert(make_uint2(codes.x, codes.y), scale);
      *reinterpret_cast<uint4*>(place(tile(), t, piece * 2 + 1)) =
          convert(make_uint2(codes.z, codes.w), scale);
    }
    for (int i = threadIdx.x; i < kTokens * kPositionPieces; i += kThreads) {
      const int t = i / kPositionPieces, piece = i % kPositionPieces;
      *reinterpret_cast<uint4*>(place(tile(), t, kValue / 8 + piece)) =
          reinterpret_cast<const uint4*>(gathered() + t * kBytes + kPosition)[piece];
    }
  }
  __device__ void take_scores(int number) {
    const int lane = threadIdx.x % 32, half_tile = half_of_tokens(), first = row() - lane / 4;
    float s[4][4] = {};
#pragma unroll 2
    for (int k = 0; k < kKey / 8; k += 2) {
      uint32_t a[4], b[4];
      load_matrices(a, place(queries(), first + lane % 16, k + lane / 16));
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        load_matrices(b, place(tile(), half_tile * 32 + n * 16 + lane / 16 * 8 + lane % 8, k + lane / 8 % 2));
        multiply(s[n * 2], a, b[0], b[1]);
        multiply(s[n * 2 + 1], a, b[2], b[3]);
      }
    }
    float high[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      high[half] = -INFINITY;
#pragma unroll
      for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& x = s[n][half * 2 + i];
          x = there[number % 2][half_tile * 32 + n * 8 + lane % 4 * 2 + i] ? x * p.factor : -INFINITY;
          high[half] = fmaxf(high[half], x);
        }
      high[half] = fmaxf(high[half], __shfl_xor_sync(kAllLanes, high[half], 1));
      high[half] = fmaxf(high[half], __shfl_xor_sync(kAllLanes, high[half], 2));
      if (lane % 4 == 0) tops[half_tile][row() + half * 8] = high[half];
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row() + half * 8;
      const float next = fmaxf(fmaxf(top[half], high[half]), tops[1 - half_tile][r]);
      const float zero = next == -INFINITY ? 0.0f : next;  // no token of this row so far
      const float shrink = power_of_two(top[half] - zero);
      top[half] = next;
      sum[half] *= shrink;
      if (half_tile == 0 && lane % 4 == 0) shrinks[r] = shrink;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float a = power_of_two(s[n][half * 2] - zero), b = power_of_two(s[n][half * 2 + 1] - zero);
        sum[half] += a + b;
        *reinterpret_cast<uint32_t*>(place(weights(), r, half_tile * 4 + n) + lane % 4 * 4) = pair(a, b);
      }
    }
    __syncthreads();
  }
  __device__ void multiply_values() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const float shrink[2] = {shrinks[m * 16 + lane / 4], shrinks[m * 16 + lane / 4 + 8]};
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) o[m][n][i] *= shrink[i / 2];
    }
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
      uint32_t a[4][4], b[4];
#pragma unroll
      for (int m = 0; m < 4; ++m)
        load_matrices(a[m], place(weights(), m * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        load_transposed(b, place(tile(), k * 16 + lane % 16, warp * 8 + n * 2 + lane / 16));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
          multiply(o[m][n * 2], a[m], b[0], b[1]);
          multiply(o[m][n * 2 + 1], a[m], b[2], b[3]);
        }
      }
    }
  }
  /// Results to o if the segment is the whole list, else to a place of its own.
  __device__ void finish(int list, int at) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 1);
      sum[half] += __shfl_xor_sync(kAllLanes, sum[half], 2);
      if (lane % 4 == 0) sums[half_of_tokens()][row() + half * 8] = sum[half];
    }
    __syncthreads();
    if (at >= 0 && half_of_tokens() == 0 && lane % 4 == 0)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = row() + half * 8;
        const float total = sums[0][r] + sums[1][r];
        if (first_row + r < p.h)
          p.weights[int64_t{at} * p.h + first_row + r] = total > 0 ? top[half] + log2f(total) : -INFINITY;
      }
#pragma unroll
    for (int m = 0; m < 4; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = m * 16 + half * 8 + lane / 4;
        if (first_row + r >= p.h) continue;
        const float total = sums[0][r] + sums[1][r], scale = total > 0 ? 1 / total : 0.0f;
        const int64_t to = (int64_t{at >= 0 ? at : list} * p.h + first_row + r) * kValue + warp * 64;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          const float a = o[m][n][half * 2] * scale, b = o[m][n][half * 2 + 1] * scale;
          if (at >= 0)
            *reinterpret_cast<float2*>(p.pieces + to + n * 8 + lane % 4 * 2) = make_float2(a, b);
          else
            *reinterpret_cast<uint32_t*>(p.o + to + n * 8 + lane % 4 * 2) = pair(a, b);
        }
      }
  }

  __device__ void run(Walk walk, int share) {
    for (int number = 0; walk.more(); walk.next(), ++number) {
      const Segment segment = walk.now;
      top[0] = top[1] = -INFINITY, sum[0] = sum[1] = 0;
#pragma unroll
      for (float& x : reinterpret_cast<float(&)[128]>(o)) x = 0;
      __syncthreads();  // the last segment's queries, bytes and sums have been used
      fetch_queries(segment.list);
      gather(segment.list, segment.first);
      for (int i = segment.first; i < segment.last; ++i) {
        wait_for_copies<0>();
        __syncthreads();  // the bytes are complete, and the last tile has been used
        convert_tile();
        __syncthreads();
        if (i + 1 < segment.last) gather(segment.list, i + 1);
        take_scores(i);
        multiply_values();
      }
      finish(segment.list, walk.whole() ? -1 : 2 * share + (number > 0));
    }
  }
};

__global__ void __launch_bounds__(kThreads, 1) decode(const Problem p) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ float tops[2][kRows], sums[2][kRows], shrinks[kRows];
  __shared__ int there[2][kTokens];
  const int share = blockIdx.x / p.groups;
  let_next_kernel_begin();
  Block block{p, shared, tops, sums, shrinks, there, static_cast<int>(blockIdx.x) % p.groups * kRows};
  block.run(Walk(p, share), share);
}

/// A warp for a head of a list: the weighted mean of the pieces, or zeros where there is no token.
__global__ void __launch_bounds__(kMergeThreads) merge(const Problem p) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, list = blockIdx.y;
  const int row = blockIdx.x * kMergeWarps + warp, begin = list * p.tiles_each();
  const int first = p.share_of(begin), pieces = p.share_of(begin + p.tiles_each() - 1) - first + 1;
  wait_for_kernel_in_front();
  if (pieces == 1 || row >= p.h) return;            // the block has written the result itself
  const bool second = p.first_tile(first) < begin;  // in the first share another list may lie in front
  const auto place_of = [&](int i) { return (int64_t{2} * (first + i) + (i == 0 && second)) * p.h + row; };
  float top = -INFINITY, sum = 0;
  for (int i = lane; i < pieces; i += 32) top = fmaxf(top, p.weights[place_of(i)]);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, offset));
  float4 mine[4] = {};
  for (int begin_of_32 = 0; top > -INFINITY && begin_of_32 < pieces; begin_of_32 += 32) {
    const int here = min(32, pieces - begin_of_32);
    const float own = lane < here ? power_of_two(p.weights[place_of(begin_of_32 + lane)] - top) : 0.0f;
    sum += own;
#pragma unroll 4  // loads that do not wait for one another
    for (int i = 0; i < here; ++i) {
      const float weight = __shfl_sync(kAllLanes, own, i);
      const float4* const piece =
          reinterpret_cast<const float4*>(p.pieces + place_of(begin_of_32 + i) * kValue);
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const float4 four = piece[x * 32 + lane];
        mine[x].x += weight * four.x, mine[x].y += weight * four.y;
        mine[x].z += weight * four.z, mine[x].w += weight * four.w;
      }
    }
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAllLanes, sum, offset);
  const float scale = sum > 0 ? 1 / sum : 0.0f;
  uint2* const to = reinterpret_cast<uint2*>(p.o + (int64_t{list} * p.h + row) * kValue);
#pragma unroll
  for (int x = 0; x < 4; ++x)
    to[x * 32 + lane] =
        make_uint2(pair(mine[x].x * scale, mine[x].y * scale), pair(mine[x].z * scale, mine[x].w * scale));
}

struct Division {
  int groups, shares;  // of heads; of the tiles of all lists
};
Division division_of(int64_t lists, int64_t h, int64_t topk) {
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const int groups = static_cast<int>((h + kRows - 1) / kRows);
  const int64_t tiles = lists * ((topk + kTokens - 1) / kTokens), most = processors / groups;
  return {groups, static_cast<int>(most < 1 ? 1 : most < tiles ? most : tiles)};
}

extern "C" size_t workspace_bytes(int64_t b, int64_t s_q, int64_t h, int64_t /*tokens*/, int64_t topk) {
  return static_cast<size_t>(2 * division_of(b * s_q, h, topk).shares * h * (kValue + 1)) * sizeof(float);
}

extern "C" void launch(const __nv_bfloat16* q /*[b,s_q,h,576]*/, const uint8_t* cache /*[tokens,656]*/,
                       const int32_t* indices /*[b,s_q,topk]*/, __nv_bfloat16* o /*[b,s_q,h,512]*/, int64_t b,
                       int64_t s_q, int64_t h, int64_t /*tokens*/, int64_t topk, void* workspace,
                       cudaStream_t stream) {
  const int64_t lists = b * s_q;
  const Division d = division_of(lists, h, topk);
  float* const pieces = static_cast<float*>(workspace);
  const Problem p{q,
                  cache,
                  indices,
                  o,
                  pieces,
                  pieces + 2 * d.shares * h * kValue,
                  static_cast<int>(lists),
                  static_cast<int>(h),
                  static_cast<int>(topk),
                  d.groups,
                  d.shares,
                  static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kKey)))};
  cudaFuncSetAttribute(decode, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  decode<<<static_cast<unsigned>(d.groups * d.shares), kThreads, kShared, stream>>>(p);
  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim =
      dim3(static_cast<unsigned>((h + kMergeWarps - 1) / kMergeWarps), static_cast<unsigned>(lists));
  config.blockDim = dim3(kMergeThreads);
  config.stream = stream;
  config.attrs = early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, merge, p);
}
