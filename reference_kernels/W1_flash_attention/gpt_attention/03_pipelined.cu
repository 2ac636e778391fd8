// Rung 3: products of sgemm's last rung, and an attention whose threads have eight queries each.
//
// Changed     both weights are turned once, so that the tiles of a product are read along rows or columns
//             that belong to a thread; copies run asynchronously through a ring of stages, and the values of
//             the next step are loaded while the current ones are multiplied. The wide product has tiles of
//             128 x 192, the narrow one of 128 x 128: 512 and 256 of them keep 132 multiprocessors busy for
//             97 % of the time. In attention a thread makes 128 multiply-adds of twelve vectors from shared
//             memory, and keys and values of the next tile come while the current ones are used.
// Why         rung 2's products wait for every tile, and its attention reads six numbers for eight
//             multiply-adds.
// Prediction  products at 85 % of the library's rate, attention twice as fast: 1.3x rung 2, ahead of
//             torch.compile by as much.
//
// Shapes      x, y [b, t, h d]; weights [outputs, inputs]; fp32, row-major; d 32 or 64; b h up to 65 535.
// Launch      turn: 256 threads for a tile of 32 x 32; products: 384 or 256 threads a tile, in bands of eight
//             tile rows; attention: 128 threads for 64 queries of a head, over (queries, b h).
// Resources   products: at most 168 registers, 64 of them sums, 93 KB of shared memory (66 KB for the narrow
//             one, two blocks per multiprocessor); attention: at most 168 registers, 69 KB; 16 b t h d + 16
//             (h d)^2 bytes of workspace.
// Cost        8 b t (h d)^2 + 2 b h t t d FLOPs; 4 b t (10 h d) bytes and the weights, these three times.
// Divides     h d % 32 == 0 (the problem says so); t anything.
// Source      the products are those of sgemm's rung 10; T. Dao et al., "FlashAttention", 2022.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// ---- the weights, turned ----------------------------------------------------------------------------------
/// to [channels, outputs] = one of two weights [outputs, channels], transposed: the first `first_tiles`
/// blocks do the first. A block does a tile of 32 x 32.
__global__ void turn(const float* __restrict__ first, const float* __restrict__ second, float* __restrict__ first_to, float* __restrict__ second_to, int64_t first_outputs,
                     int64_t second_outputs, int64_t channels, int64_t first_tiles) {
  __shared__ float tile[32][33];
  const bool is_first = blockIdx.x < first_tiles;
  const float* const from = is_first ? first : second;
  float* const to = is_first ? first_to : second_to;
  const int64_t index = is_first ? blockIdx.x : blockIdx.x - first_tiles, outputs = is_first ? first_outputs : second_outputs;
  const int64_t output0 = index / (channels / 32) * 32, channel0 = index % (channels / 32) * 32;  // whole tiles: h d is a multiple of 32
  for (int i = threadIdx.y; i < 32; i += 8) tile[i][threadIdx.x] = from[(output0 + i) * channels + channel0 + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8) to[(channel0 + i) * outputs + output0 + threadIdx.x] = tile[threadIdx.x][i];
}

// ---- products ---------------------------------------------------------------------------------------------
/// Sizes of one variant: tile of a block, depth, tile of a warp, stages, blocks per multiprocessor.
template <int kTileM_, int kTileN_, int kDepth_, int kWarpM_, int kWarpN_, int kStages_, int kBlocks_>
struct Shape {
  static constexpr int kTileM = kTileM_, kTileN = kTileN_, kDepth = kDepth_, kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
  static constexpr int kPad = 4;  // keeps rows of the transposed tile on 16 bytes and spreads the transposing copies over banks
  static constexpr int kRowA = kTileM + kPad;
  static constexpr int kStageFloats = (kRowA + kTileN) * kDepth;
  static constexpr int kSharedBytes = kStages * kStageFloats * 4;
};

using Wide = Shape<128, 192, 24, 32, 64, 3, 1>;
using Narrow = Shape<128, 128, 16, 64, 32, 4, 2>;

constexpr int kLanesM = 4, kLanesN = 8;  // the lanes of a warp as a grid
constexpr int kBand = 8;                 // tile rows

/// Copies kBytes to shared memory, asynchronously; writes zeros instead where the element does not exist.
template <int kBytes>
__device__ void copy_or_zero(float* to, const float* from, bool exists, const float* any_valid_address) {
  __pipeline_memcpy_async(to, exists ? from : any_valid_address, kBytes, exists ? 0 : kBytes);
}

/// The copies of one thread: every kStepA-th row of A's tile at one depth, and kCopiesB vectors of B's,
/// kThreads apart.
template <class S>
struct Loader {
  static constexpr int kAcrossB = S::kTileN / 4, kStepA = S::kThreads / S::kDepth, kCopiesB = kAcrossB * S::kDepth / S::kThreads;
  static_assert(S::kThreads % S::kDepth == 0 && S::kTileM % kStepA == 0 && kAcrossB * S::kDepth % S::kThreads == 0, "equal shares for all threads");
  const float *a, *b;  // of the next tiles: this thread's first element; the tile's first one
  const float* any_valid_address;
  int k, n;
  int rows_left, columns_left, depth_left;  // of the matrices, seen from there
  int a_row, a_depth;                       // where this thread's first element lies in A's tile

  __device__ Loader(const float* a_matrix, const float* b_matrix, int m, int k_, int n_, int row0, int column0) : any_valid_address(a_matrix), k(k_), n(n_) {
    a_row = threadIdx.x / S::kDepth, a_depth = threadIdx.x % S::kDepth;
    a = a_matrix + static_cast<int64_t>(row0 + a_row) * k + a_depth;
    b = b_matrix + column0;
    rows_left = m - row0 - a_row, columns_left = n - column0, depth_left = k;
  }

  /// Starts the copies of the next tiles. kWhole: all of them lie inside, so nothing is checked.
  template <bool kWhole>
  __device__ void fetch(float* a_tile, float* b_tile) {
#pragma unroll
    for (int i = 0; i < S::kTileM; i += kStepA)
      copy_or_zero<4>(a_tile + a_depth * S::kRowA + a_row + i, a + i * k, kWhole || (i < rows_left && a_depth < depth_left), any_valid_address);
#pragma unroll
    for (int i = 0; i < kCopiesB; ++i) {
      const int vector = threadIdx.x + i * S::kThreads, depth = vector / kAcrossB, column = vector % kAcrossB * 4;
      copy_or_zero<16>(b_tile + vector * 4, b + depth * n + column, kWhole || (column < columns_left && depth < depth_left), any_valid_address);
    }
    a += S::kDepth, b += static_cast<int64_t>(S::kDepth) * n, depth_left -= S::kDepth;
  }
};

/// Row or column, within the block's tile, of a thread's float4 group.
__device__ int my_offset(int warp_start, int lane, int lanes, int group) { return warp_start + (group * lanes + lane) * 4; }

/// c[row, column] = a[row, :] . b[:, column] + bias[column]
template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks) linear(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
                                                                  float* __restrict__ c, int m, int k, int n) {
  constexpr int kGroupsM = S::kWarpM / (4 * kLanesM), kGroupsN = S::kWarpN / (4 * kLanesN);  // float4 a thread and step
  static_assert(S::kDepth % 2 == 0, "a tile begins with the first of the two sets of fragments");
  extern __shared__ float4 shared[];
  const auto a_tile = [&](int stage) { return reinterpret_cast<float*>(shared) + stage * S::kStageFloats; };
  const auto b_tile = [&](int stage) { return a_tile(stage) + S::kRowA * S::kDepth; };

  // Tiles come in bands of rows; within a band, all of a tile column before the next one. The last band may
  // be lower.
  const int tile_rows = (m + S::kTileM - 1) / S::kTileM, tile_columns = (n + S::kTileN - 1) / S::kTileN;
  const int band = blockIdx.x / (kBand * tile_columns), within = blockIdx.x % (kBand * tile_columns);
  const int height = tile_rows - band * kBand < kBand ? tile_rows - band * kBand : kBand;
  const int row0 = (band * kBand + within % height) * S::kTileM, column0 = within / height * S::kTileN;
  const bool inside = row0 + S::kTileM <= m && column0 + S::kTileN <= n;

  Loader<S> loader(a, b, m, k, n, row0, column0);
  const auto fetch = [&](int stage) {  // a group of copies for each tile, also for those behind the end
    if (inside && loader.depth_left >= S::kDepth)
      loader.template fetch<true>(a_tile(stage), b_tile(stage));
    else if (loader.depth_left > 0)
      loader.template fetch<false>(a_tile(stage), b_tile(stage));
    __pipeline_commit();
  };
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (S::kTileN / S::kWarpN) * S::kWarpM, warp_column = warp % (S::kTileN / S::kWarpN) * S::kWarpN;
  const int lane_m = lane / kLanesN, lane_n = lane % kLanesN;

  float4 a_values[2][kGroupsM], b_values[2][kGroupsN];  // of two steps
  const auto load_values = [&](int slot, int stage, int step) {
#pragma unroll
    for (int p = 0; p < kGroupsM; ++p) a_values[slot][p] = *reinterpret_cast<const float4*>(a_tile(stage) + step * S::kRowA + my_offset(warp_row, lane_m, kLanesM, p));
#pragma unroll
    for (int q = 0; q < kGroupsN; ++q) b_values[slot][q] = *reinterpret_cast<const float4*>(b_tile(stage) + step * S::kTileN + my_offset(warp_column, lane_n, kLanesN, q));
  };

  float sum[kGroupsM][4][kGroupsN][4] = {};
  const auto next = [](int stage) { return stage + 1 < S::kStages ? stage + 1 : 0; };
#pragma unroll
  for (int stage = 0; stage < S::kStages - 1; ++stage) fetch(stage);
  __pipeline_wait_prior(S::kStages - 2);
  __syncthreads();  // the first tile has come for all threads
  load_values(0, 0, 0);

  int present = 0, free = S::kStages - 1;
  for (int depth = 0; depth < k; depth += S::kDepth, present = next(present), free = next(free)) {
#pragma unroll
    for (int step = 0; step < S::kDepth; ++step) {
      if (step == 0) fetch(free);  // all have done with it: they have passed the barrier of the tile before
      if (step == S::kDepth - 1) {
        __pipeline_wait_prior(S::kStages - 2);
        __syncthreads();  // the next tile has come for all threads, and all have loaded the last values of this one
      }
      if (step < S::kDepth - 1)
        load_values((step + 1) % 2, present, step + 1);
      else if (depth + S::kDepth < k)
        load_values(0, next(present), 0);
#pragma unroll
      for (int p = 0; p < kGroupsM; ++p) {
        const float4 here = a_values[step % 2][p];
        const float left[4] = {here.x, here.y, here.z, here.w};
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
          for (int q = 0; q < kGroupsN; ++q) {
            sum[p][r][q][0] += left[r] * b_values[step % 2][q].x;
            sum[p][r][q][1] += left[r] * b_values[step % 2][q].y;
            sum[p][r][q][2] += left[r] * b_values[step % 2][q].z;
            sum[p][r][q][3] += left[r] * b_values[step % 2][q].w;
          }
      }
    }
  }
#pragma unroll
  for (int q = 0; q < kGroupsN; ++q) {
    const int column = column0 + my_offset(warp_column, lane_n, kLanesN, q);  // columns come in fours: their number is a multiple of 32
    if (column >= n) continue;
    const float4 add = *reinterpret_cast<const float4*>(bias + column);
#pragma unroll
    for (int p = 0; p < kGroupsM; ++p)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = row0 + my_offset(warp_row, lane_m, kLanesM, p) + r;
        if (row >= m) continue;
        const float* own = sum[p][r][q];
        *reinterpret_cast<float4*>(c + static_cast<int64_t>(row) * n + column) = make_float4(own[0] + add.x, own[1] + add.y, own[2] + add.z, own[3] + add.w);
      }
  }
}

// ---- attention --------------------------------------------------------------------------------------------
constexpr int kAttending = 128, kQueries = 64, kKeys = 64, kOwnQueries = 8, kAcross = 16;  // sixteen threads share eight queries
constexpr int kOwnKeys = kKeys / kAcross, kRowP = kKeys + 4;
template <int kD>
struct Rows {
  static constexpr int kRow = kD + 4;  // neighbouring rows begin four banks apart, so that eight vectors of eight rows come at once
  static constexpr int kSharedBytes = ((kQueries + kKeys) * kRow + kKeys * kD + kQueries * kRowP) * 4;
};

/// What a thread has of a value or of a result.
template <int kOwn>
using Own = std::conditional_t<kOwn == 4, float4, float2>;

/// Starts the copies of `kKeys` rows of queries, keys or values; zeros behind the last one.
template <int kD, int kRow>
__device__ void fetch_rows(float* tile, const float* from, int64_t first, int64_t t, int64_t stride) {
  for (int i = threadIdx.x; i < kKeys * kD / 4; i += kAttending) {
    const int row = i / (kD / 4), x = i % (kD / 4) * 4;
    copy_or_zero<16>(tile + row * kRow + x, from + (first + row) * stride + x, first + row < t, from);
  }
  __pipeline_commit();
}

/// 64 queries of one head against all keys that they see. A thread has eight queries and, of a tile's scores,
/// every sixteenth key; of the results, kD / 16 neighbouring numbers.
template <int kD>
__global__ void __launch_bounds__(kAttending, 3) attention(const float* __restrict__ qkv, float* __restrict__ attended, float factor, int64_t t, int64_t h) {
  constexpr int kRow = Rows<kD>::kRow, kOwn = kD / kAcross;
  extern __shared__ float4 shared[];
  float* const q_tile = reinterpret_cast<float*>(shared);
  float* const k_tile = q_tile + kQueries * kRow;
  float* const v_tile = k_tile + kKeys * kRow;
  float* const p_tile = v_tile + kKeys * kD;
  const int64_t channels = h * kD, batch = blockIdx.y / h, head = blockIdx.y % h, first = static_cast<int64_t>(blockIdx.x) * kQueries;
  const float* const queries = qkv + batch * t * 3 * channels + head * kD;
  const float *const keys = queries + channels, *const values = keys + channels;
  const int lane = threadIdx.x % kAcross, query0 = threadIdx.x / kAcross * kOwnQueries;
  fetch_rows<kD, kRow>(q_tile, queries, first, t, 3 * channels);
  fetch_rows<kD, kRow>(k_tile, keys, 0, t, 3 * channels);
  fetch_rows<kD, kD>(v_tile, values, 0, t, 3 * channels);

  const int64_t last = first + kQueries < t ? first + kQueries : t;  // no query of this block sees further
  float maximum[kOwnQueries], total[kOwnQueries] = {};
  alignas(16) float out[kOwnQueries][kOwn] = {};
#pragma unroll
  for (int r = 0; r < kOwnQueries; ++r) maximum[r] = -FLT_MAX;
  for (int64_t j0 = 0; j0 < last; j0 += kKeys) {
    __pipeline_wait_prior(1);
    __syncthreads();  // the keys have come, and at first the queries
    float score[kOwnQueries][kOwnKeys] = {};
#pragma unroll 1
    for (int x = 0; x < kD; x += 4) {
      float4 k[kOwnKeys];
#pragma unroll
      for (int c = 0; c < kOwnKeys; ++c) k[c] = *reinterpret_cast<const float4*>(k_tile + (lane + c * kAcross) * kRow + x);
#pragma unroll
      for (int r = 0; r < kOwnQueries; ++r) {
        const float4 q = *reinterpret_cast<const float4*>(q_tile + (query0 + r) * kRow + x);
#pragma unroll
        for (int c = 0; c < kOwnKeys; ++c) {
          score[r][c] += q.x * k[c].x;
          score[r][c] += q.y * k[c].y;
          score[r][c] += q.z * k[c].z;
          score[r][c] += q.w * k[c].w;
        }
      }
    }
    __syncthreads();  // nobody needs these keys any more
    fetch_rows<kD, kRow>(k_tile, keys, j0 + kKeys, last, 3 * channels);
#pragma unroll
    for (int r = 0; r < kOwnQueries; ++r) {
      float most = maximum[r];
#pragma unroll
      for (int c = 0; c < kOwnKeys; ++c) {
        score[r][c] = j0 + lane + c * kAcross <= first + query0 + r ? score[r][c] * factor : -FLT_MAX;  // ahead of the query: nothing
        most = fmaxf(most, score[r][c]);
      }
#pragma unroll
      for (int offset = kAcross / 2; offset > 0; offset /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
      const float shrink = exp2f(maximum[r] - most);
      maximum[r] = most;
      float sum = 0;
#pragma unroll
      for (int c = 0; c < kOwnKeys; ++c) {
        const float p = exp2f(score[r][c] - most);  // every query sees the first key of a tile, so `most` is a score, and what it does not see becomes 0
        p_tile[(query0 + r) * kRowP + lane + c * kAcross] = p;
        sum += p;
      }
      total[r] = total[r] * shrink + sum;  // of this thread's own keys: added up over the sixteen at the end
#pragma unroll
      for (int x = 0; x < kOwn; ++x) out[r][x] *= shrink;
    }
    __pipeline_wait_prior(1);
    __syncthreads();  // the values have come, and the weights are written
#pragma unroll 1
    for (int j = 0; j < kKeys; j += 4) {
      alignas(16) float v[4][kOwn];
#pragma unroll
      for (int c = 0; c < 4; ++c)
        *reinterpret_cast<Own<kOwn>*>(v[c]) = *reinterpret_cast<const Own<kOwn>*>(v_tile + (j + c) * kD + lane * kOwn);
#pragma unroll
      for (int r = 0; r < kOwnQueries; ++r) {
        const float4 p = *reinterpret_cast<const float4*>(p_tile + (query0 + r) * kRowP + j);
#pragma unroll
        for (int x = 0; x < kOwn; ++x) {
          out[r][x] += p.x * v[0][x];
          out[r][x] += p.y * v[1][x];
          out[r][x] += p.z * v[2][x];
          out[r][x] += p.w * v[3][x];
        }
      }
    }
    __syncthreads();  // nobody needs these values any more
    fetch_rows<kD, kD>(v_tile, values, j0 + kKeys, last, 3 * channels);
  }
  __pipeline_wait_prior(0);
#pragma unroll
  for (int r = 0; r < kOwnQueries; ++r) {
    float sum = total[r];
#pragma unroll
    for (int offset = kAcross / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    const int64_t row = first + query0 + r;
    if (row >= t) continue;
#pragma unroll
    for (int x = 0; x < kOwn; ++x) out[r][x] /= sum;
    *reinterpret_cast<Own<kOwn>*>(attended + (batch * t + row) * channels + head * kD + lane * kOwn) = *reinterpret_cast<const Own<kOwn>*>(out[r]);
  }
}

// ---- all of it --------------------------------------------------------------------------------------------
extern "C" size_t workspace_bytes(int64_t b, int64_t t, int64_t h, int64_t d) { return static_cast<size_t>(4 * b * t * h * d + 4 * (h * d) * (h * d)) * sizeof(float); }

template <class S>
static void multiply(const float* a, const float* weight, const float* bias, float* to, int64_t m, int64_t k, int64_t n, cudaStream_t stream) {
  const int64_t tiles = (m + S::kTileM - 1) / S::kTileM * ((n + S::kTileN - 1) / S::kTileN);
  cudaFuncSetAttribute(linear<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes);
  linear<S><<<static_cast<unsigned>(tiles), S::kThreads, S::kSharedBytes, stream>>>(a, weight, bias, to, static_cast<int>(m), static_cast<int>(k), static_cast<int>(n));
}

template <int kD>
static void attend(const float* qkv, float* attended, int64_t b, int64_t t, int64_t h, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((t + kQueries - 1) / kQueries), static_cast<unsigned>(b * h));
  const float factor = 1.44269504f / std::sqrt(static_cast<float>(kD));  // with log2(e): powers of two are what the hardware has
  cudaFuncSetAttribute(attention<kD>, cudaFuncAttributeMaxDynamicSharedMemorySize, Rows<kD>::kSharedBytes);
  attention<kD><<<grid, kAttending, Rows<kD>::kSharedBytes, stream>>>(qkv, attended, factor, t, h);
}

extern "C" void launch(const float* x /*[b,t,h*d]*/, const float* w_qkv /*[3*h*d,h*d]*/, const float* b_qkv /*[3*h*d]*/, const float* w_proj /*[h*d,h*d]*/,
                       const float* b_proj /*[h*d]*/, float* y /*[b,t,h*d]*/, int64_t b, int64_t t, int64_t h, int64_t d, void* workspace,
                       cudaStream_t stream) {
  const int64_t tokens = b * t, channels = h * d, weight = channels * channels;
  float* const turned_qkv = static_cast<float*>(workspace);
  float* const turned_proj = turned_qkv + 3 * weight;
  float* const qkv = turned_proj + weight;
  float* const attended = qkv + 3 * tokens * channels;
  const int64_t tiles = channels / 32 * (channels / 32);
  turn<<<static_cast<unsigned>(4 * tiles), dim3(32, 8), 0, stream>>>(w_qkv, w_proj, turned_qkv, turned_proj, 3 * channels, channels, channels, 3 * tiles);
  multiply<Wide>(x, turned_qkv, b_qkv, qkv, tokens, channels, 3 * channels, stream);
  if (d == 64)
    attend<64>(qkv, attended, b, t, h, stream);
  else
    attend<32>(qkv, attended, b, t, h, stream);
  multiply<Narrow>(attended, turned_proj, b_proj, y, tokens, channels, channels, stream);
}
