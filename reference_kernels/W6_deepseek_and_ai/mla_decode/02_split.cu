// Rung 2: tensor cores, and every block has the same number of tiles, whatever the lengths are.
//
// Changed     64 rows a block, mma.sync on tiles of 64 tokens, the next tile copied asynchronously. A block's
//             share is a range of all tiles of all sequences, which it finds by itself; a second kernel,
//             launched early, merges the parts of a sequence.
// Why         rung 1 is bound by instructions: tensor cores do 64 times as many products with one. And its
//             longest sequence, twice the average, has as many blocks as the shortest.
// Prediction  20x rung 1: 300 TFLOP/s, bound by the loads of operands from shared memory.
//
// Shapes      q [b, s_q, h, 576]; cache [b * max_pages, 64, 576]; block_table [b, max_pages]; lengths [b];
//             o [b, s_q, h, 512].
// Launch      as many blocks as multiprocessors, 256 threads; then 256 threads for eight rows of a sequence.
// Resources   up to 255 registers; 225 KB of shared memory; workspace: two pieces for each share, 2052 bytes
//             a row.
// Cost        2 s_q h (576 + 512) sum(lengths) FLOPs; 1152 sum(lengths) bytes, if blocks with the same
//             sequence find each other's tiles in the L2 cache.
// Divides     s_q * h <= 256 and b <= 4096 (the problem says so); nothing else.
// Source      T. Dao et al., "Flash-Decoding" (2023); a schedule by tiles as in FlashInfer, Z. Ye et al.
//             (2025), but made on the device. The early launch needs compute capability 9.0.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kTokens = 64;              // of a page, and of a tile
constexpr int kKey = 576, kValue = 512;  // columns of the cache; the first ones are values, too
constexpr int kRows = 64;                // of q, for a block: row t * h + head of a sequence
constexpr int kThreads = 256, kMergeThreads = 256, kMergeWarps = kMergeThreads / 32;
constexpr int kPanel = 64 * 128;  // [B]: 64 rows of 64 columns; 16-byte pieces are swizzled
constexpr int kTile = kKey / 64 * kPanel;
constexpr int kShared = 3 * kTile + kPanel;  // queries, two tiles, weights
constexpr int kMostSequences = 4096;
static_assert(4 * (kMostSequences + 1) <= kTile, "the starts of sequences lie in a tile's place at first");

struct Problem {
  const __nv_bfloat16 *q, *cache;
  const int *table, *lengths;
  __nv_bfloat16* o;
  float* pieces;   // [2 * shares, rows, 512]: results of parts of a sequence
  float* weights;  // [2 * shares, rows]: log2 of the sum of their exponentials
  int b, s_q, h, max_pages;
  int groups;  // of rows, one for a block
  int shares;  // of all tokens
  float factor;

  __host__ __device__ int rows() const { return s_q * h; }
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

// ---- shares -----------------------------------------------------------------------------------------------
/// The tiles of all sequences in one row, cut into shares. No share is empty: of more shares than tiles, only
/// as many exist as there are tiles.
__device__ int sharers(int tiles, int shares) { return min(tiles, shares); }
__device__ int first_tile(int tiles, int share, int sharers) {
  return static_cast<int>(int64_t{tiles} * share / sharers);
}
/// Which share a tile belongs to.
__device__ int share_of(int tile, int tiles, int sharers) {
  return static_cast<int>(((int64_t{tile} + 1) * sharers - 1) / tiles);
}
__device__ int tiles_of(int length) { return (length + kTokens - 1) / kTokens; }

/// starts[s]: the tiles of the sequences before s, for s up to b. By all threads of a block.
__device__ void add_up_tiles(int* starts, const int* lengths, int b) {
  for (int i = threadIdx.x; i < b; i += blockDim.x) starts[i + 1] = tiles_of(lengths[i]);
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x;
    int before = 0;
    for (int first = 0; first < b; first += 32) {
      int sum = first + lane < b ? starts[first + lane + 1] : 0;
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
  __syncthreads();
}
__device__ int sequence_of(const int* starts, int tile, int b) {
  int low = 0, high = b;  // starts[low] <= tile < starts[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (starts[middle] <= tile ? low : high) = middle;
  }
  return low;
}

/// The part of a sequence that lies in a share: its tiles first to last - 1, counted from the sequence's own
/// first one.
struct Segment {
  int sequence, length, first, last;
  __device__ int tiles() const { return last - first; }
  __device__ bool whole() const { return first == 0 && last == tiles_of(length); }
};
/// Walks over the segments of a share.
struct Walk {
  const int* lengths;
  int left;  // tiles of the share that no segment has had
  Segment now;

  __device__ Walk(const Problem& p, int sequence, int offset, int tiles) : lengths(p.lengths), left(tiles) {
    now = {sequence, lengths[sequence], offset, 0};
    fit();
  }
  __device__ bool more() const { return now.tiles() > 0; }
  __device__ void next() {
    left -= now.tiles();
    now.last = now.first = 0;
    if (left == 0) return;
    do now.length = lengths[++now.sequence];
    while (now.length == 0);
    fit();
  }

 private:
  __device__ void fit() { now.last = min(tiles_of(now.length), now.first + left); }
};

// ---- one block's share ------------------------------------------------------------------------------------
/// Where 16 bytes lie, of a matrix in panels of 64 columns: eight rows have them in eight different banks.
__device__ uint8_t* place(uint8_t* matrix, int row, int piece) {
  return matrix + piece / 8 * kPanel + row * 128 + (piece % 8 ^ row % 8) * 16;
}
/// Rows of 576 columns; from `there` on, zeros.
__device__ void fetch(uint8_t* to, const __nv_bfloat16* from, int there) {
  constexpr int kPieces = kKey / 8;
  for (int i = threadIdx.x; i < 64 * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const bool exists = row < there;
    copy_16(place(to, row, i % kPieces), from + (exists ? int64_t{i} * 8 : 0), exists);
  }
  commit_copies();
}

/// Warp w computes the scores of 16 rows and 32 tokens, and has columns 64 w to 64 w + 63 of the result of
/// all 64 rows.
struct Block {
  const Problem& p;
  uint8_t* shared;
  float (*tops)[kRows];  // of each half of the tokens
  float (*sums)[kRows];
  float* shrinks;
  const int first_row;
  float o[4][8][4];
  float top[2], sum[2];  // of rows row and row + 8

  __device__ uint8_t* queries() const { return shared; }
  __device__ uint8_t* tile(int stage) const { return shared + (1 + stage) * kTile; }
  __device__ uint8_t* weights() const { return shared + 3 * kTile; }
  __device__ int half_of_tokens() const { return threadIdx.x / 128; }
  __device__ int row() const { return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4; }

  __device__ void fetch_tile(const Segment& segment, int number, int stage) {
    const int64_t page = p.table[int64_t{segment.sequence} * p.max_pages + number];
    fetch(tile(stage), p.cache + page * kTokens * kKey, segment.length - number * kTokens);
  }
  __device__ void take_scores(const Segment& segment, int number, uint8_t* keys) {
    const int lane = threadIdx.x % 32, half_tile = half_of_tokens(), first = row() - lane / 4;
    float s[4][4] = {};
#pragma unroll 2
    for (int k = 0; k < kKey / 8; k += 2) {
      uint32_t a[4], b[4];
      load_matrices(a, place(queries(), first + lane % 16, k + lane / 16));
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        load_matrices(b, place(keys, half_tile * 32 + n * 16 + lane / 16 * 8 + lane % 8, k + lane / 8 % 2));
        multiply(s[n * 2], a, b[0], b[1]);
        multiply(s[n * 2 + 1], a, b[2], b[3]);
      }
    }
    float high[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int token = (first_row + row() + half * 8) / p.h;
      const int seen =
          segment.length - number * kTokens - (p.s_q - 1 - token) - half_tile * 32 - lane % 4 * 2;
      high[half] = -INFINITY;
#pragma unroll
      for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& x = s[n][half * 2 + i];
          x = n * 8 + i < seen ? x * p.factor : -INFINITY;
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
  __device__ void multiply_values(uint8_t* values) {
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
        load_transposed(b, place(values, k * 16 + lane % 16, warp * 8 + n * 2 + lane / 16));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
          multiply(o[m][n * 2], a[m], b[0], b[1]);
          multiply(o[m][n * 2 + 1], a[m], b[2], b[3]);
        }
      }
    }
  }
  /// Results to o if the segment is the whole sequence, else to a place of its own.
  __device__ void finish(const Segment& segment, int at) {
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
        if (first_row + r < p.rows())
          p.weights[int64_t{at} * p.rows() + first_row + r] =
              total > 0 ? top[half] + log2f(total) : -INFINITY;
      }
#pragma unroll
    for (int m = 0; m < 4; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = m * 16 + half * 8 + lane / 4;
        if (first_row + r >= p.rows()) continue;
        const float total = sums[0][r] + sums[1][r], scale = total > 0 ? 1 / total : 0.0f;
        const int64_t to =
            (int64_t{at >= 0 ? at : segment.sequence} * p.rows() + first_row + r) * kValue + warp * 64;
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
      __syncthreads();  // the last segment's queries, tiles and sums have been used
      fetch(queries(), p.q + (int64_t{segment.sequence} * p.rows() + first_row) * kKey, p.rows() - first_row);
      fetch_tile(segment, segment.first, 0);
      for (int i = segment.first; i < segment.last; ++i) {
        const int stage = (i - segment.first) % 2;
        __syncthreads();  // the last tile has been used
        if (i + 1 < segment.last) {
          fetch_tile(segment, i + 1, stage ^ 1);
          wait_for_copies<1>();
        } else {
          wait_for_copies<0>();
        }
        __syncthreads();
        take_scores(segment, i, tile(stage));
        multiply_values(tile(stage));
      }
      finish(segment, segment.whole() ? -1 : 2 * share + (number > 0));
    }
  }
};

__global__ void __launch_bounds__(kThreads, 1) decode(const Problem p) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ float tops[2][kRows], sums[2][kRows], shrinks[kRows];
  int* const starts = reinterpret_cast<int*>(shared);
  const int share = blockIdx.x / p.groups;
  let_next_kernel_begin();
  add_up_tiles(starts, p.lengths, p.b);
  const int tiles = starts[p.b], shares = sharers(tiles, p.shares);
  if (share >= shares) return;
  const int begin = first_tile(tiles, share, shares), end = first_tile(tiles, share + 1, shares);
  const int sequence = sequence_of(starts, begin, p.b);
  const Walk walk(p, sequence, begin - starts[sequence], end - begin);
  Block block{p, shared, tops, sums, shrinks, static_cast<int>(blockIdx.x) % p.groups * kRows};
  block.run(walk, share);
}

/// A warp for a row of a sequence: the weighted mean of the pieces, or zeros where there is no token.
__global__ void __launch_bounds__(kMergeThreads) merge(const Problem p) {
  extern __shared__ int starts[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, s = blockIdx.y;
  const int row = blockIdx.x * kMergeWarps + warp;
  add_up_tiles(starts, p.lengths, p.b);
  const int tiles = starts[p.b], begin = starts[s], end = starts[s + 1], shares = sharers(tiles, p.shares);
  const int first = begin < end ? share_of(begin, tiles, shares) : 0;
  const int pieces = begin < end ? share_of(end - 1, tiles, shares) - first + 1 : 0;
  wait_for_kernel_in_front();
  if (pieces == 1 || row >= p.rows()) return;  // the block has written the result itself
  // In the first share another sequence may lie in front.
  const bool second = pieces > 0 && first_tile(tiles, first, shares) < begin;
  const auto place_of = [&](int i) {
    return (int64_t{2} * (first + i) + (i == 0 && second)) * p.rows() + row;
  };
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
  uint2* const to = reinterpret_cast<uint2*>(p.o + (int64_t{s} * p.rows() + row) * kValue);
#pragma unroll
  for (int x = 0; x < 4; ++x)
    to[x * 32 + lane] =
        make_uint2(pair(mine[x].x * scale, mine[x].y * scale), pair(mine[x].z * scale, mine[x].w * scale));
}

struct Division {
  int groups, shares;  // of rows; of tokens
};
Division division_of(int64_t rows) {
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const int groups = static_cast<int>((rows + kRows - 1) / kRows);
  return {groups, processors / groups > 0 ? processors / groups : 1};
}

extern "C" size_t workspace_bytes(int64_t /*b*/, int64_t s_q, int64_t h, int64_t /*max_pages*/) {
  return static_cast<size_t>(2 * division_of(s_q * h).shares * s_q * h * (kValue + 1)) * sizeof(float);
}

extern "C" void launch(const __nv_bfloat16* q /*[b,s_q,h,576]*/,
                       const __nv_bfloat16* cache /*[b * max_pages,64,576]*/,
                       const int32_t* block_table /*[b,max_pages]*/, const int32_t* lengths /*[b]*/,
                       __nv_bfloat16* o /*[b,s_q,h,512]*/, int64_t b, int64_t s_q, int64_t h,
                       int64_t max_pages, void* workspace, cudaStream_t stream) {
  const int64_t rows = s_q * h;
  const Division d = division_of(rows);
  float* const pieces = static_cast<float*>(workspace);
  const Problem p{q,
                  cache,
                  block_table,
                  lengths,
                  o,
                  pieces,
                  pieces + 2 * d.shares * rows * kValue,
                  static_cast<int>(b),
                  static_cast<int>(s_q),
                  static_cast<int>(h),
                  static_cast<int>(max_pages),
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
      dim3(static_cast<unsigned>((rows + kMergeWarps - 1) / kMergeWarps), static_cast<unsigned>(b));
  config.blockDim = dim3(kMergeThreads);
  config.dynamicSmemBytes = 4 * (static_cast<size_t>(b) + 1);
  config.stream = stream;
  config.attrs = early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, merge, p);
}
