// Rung 4: the weight is turned once, and the product is sgemm's last rung.
//
// Changed     a small kernel writes the weight [channels, k] as [k, channels] into the workspace. Then both
//             tiles are read along rows or columns that belong to a thread, not along k: six float4 from
//             shared memory for 128 multiply-adds of one step instead of 24 for four steps at once, and the
//             values of the next step are loaded while the current ones are multiplied. Smaller warp tiles:
//             twice the warps of rung 3. Swish by the hardware's exponential.
// Why         rung 3 holds values of four steps of k in registers, so nothing can be loaded ahead, and two
//             warps per scheduler wait for shared memory together. Turning 1 MB costs 3 us.
// Prediction  the product at 85 % of cuBLAS, 0.43 ms in all: 1.3x rung 3, ahead of torch.compile's 0.51 ms.
//
// Shapes      x [rows, k], weight [channels, k], y [rows, channels], row-major; any rows and k.
// Launch      the transpose: <<<(k / 32, channels / 32), (32, 8)>>>; the product: one block of 256 threads a
//             tile of 128 x 128, in bands of eight tile rows.
// Resources   at most 128 registers, 64 of them sums: two blocks per multiprocessor; 66 KB of shared memory;
//             k * channels floats of workspace.
// Cost        (2 k + 14) rows channels FLOPs; y written once.
// Divides     channels % 32 == 0 (the problem says so): a group of 32 channels of one row is held by eight
//             lanes, all of it or none.
// Source      the tiles of sgemm's last rung (L5), carried over; the epilogue is this project's.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

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

using Tuned = Shape<128, 128, 16, 64, 32, 4, 2>;

constexpr int kLanesM = 4, kLanesN = 8;  // the lanes of a warp as a grid
constexpr int kBand = 8;                 // tile rows
constexpr int kGroup = 32;               // channels of a group
static_assert(kGroup == 4 * kLanesN, "eight lanes hold a group");

/// Copies kBytes to shared memory, asynchronously; writes zeros instead where the element does not exist.
template <int kBytes>
__device__ void copy_or_zero(float* to, const float* from, bool exists, const float* any_valid_address) {
  __pipeline_memcpy_async(to, exists ? from : any_valid_address, kBytes, exists ? 0 : kBytes);
}

/// The copies of one thread: every kStepA-th row of A's tile at one depth, and a vector of every kStepB-th
/// row of B's.
template <class S>
struct Loader {
  static constexpr int kWidth = 4;  // floats of B a copy
  static constexpr int kAcrossB = S::kTileN / kWidth, kSkipB = S::kThreads < kAcrossB ? S::kThreads : kAcrossB;
  static constexpr int kStepA = S::kThreads / S::kDepth, kStepB = S::kThreads / kSkipB;
  static_assert(S::kTileM % kStepA == 0 && S::kDepth % kStepB == 0 && kAcrossB % kSkipB == 0, "equal shares for all threads");
  const float *a, *b;  // this thread's first elements of the next tiles
  const float* any_valid_address;
  int k, n;
  int rows_left, columns_left, depth_left;  // of the matrices, seen from this thread's first elements
  int a_row, a_depth, b_depth, b_column;    // where those lie in the tiles

  __device__ Loader(const float* a_matrix, const float* b_matrix, int m, int k_, int n_, int row0, int column0)
      : any_valid_address(a_matrix), k(k_), n(n_) {
    const int thread = threadIdx.x;
    a_row = thread / S::kDepth, a_depth = thread % S::kDepth;
    b_depth = thread / kSkipB, b_column = thread % kSkipB * kWidth;
    a = a_matrix + static_cast<int64_t>(row0 + a_row) * k + a_depth;
    b = b_matrix + static_cast<int64_t>(b_depth) * n + column0 + b_column;
    rows_left = m - row0 - a_row, columns_left = n - column0 - b_column, depth_left = k;
  }

  /// Starts the copies of the next tiles. kWhole: all of them lie inside, so nothing is checked.
  template <bool kWhole>
  __device__ void fetch(float* a_tile, float* b_tile) {
#pragma unroll
    for (int i = 0; i < S::kTileM; i += kStepA)
      copy_or_zero<4>(a_tile + a_depth * S::kRowA + a_row + i, a + i * k, kWhole || (i < rows_left && a_depth < depth_left),
                      any_valid_address);
#pragma unroll
    for (int i = 0; i < S::kDepth; i += kStepB)
#pragma unroll
      for (int j = 0; j < S::kTileN; j += kSkipB * kWidth)
        copy_or_zero<4 * kWidth>(b_tile + (b_depth + i) * S::kTileN + b_column + j, b + i * n + j,
                                 kWhole || (j < columns_left && b_depth + i < depth_left), any_valid_address);
    a += S::kDepth, b += static_cast<int64_t>(S::kDepth) * n, depth_left -= S::kDepth;
  }
};

/// Row or column, within the block's tile, of a thread's float4 group.
__device__ int my_offset(int warp_start, int lane, int lanes, int group) { return warp_start + (group * lanes + lane) * 4; }

__device__ float swish(float z) { return __fdividef(z, 1 + __expf(-z)); }

/// The sum of `v` over the eight lanes that share a group of a row.
__device__ float group_sum(float v) {
#pragma unroll
  for (int offset = kLanesN / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

/// What is done to four neighbouring channels, a lane's part of their group.
struct Epilogue {
  float4 linear_bias, bias, gamma, beta;
  float eps;

  __device__ float4 apply(const float (&product)[4]) const {
    float4 v = make_float4(swish(product[0] + linear_bias.x) + bias.x, swish(product[1] + linear_bias.y) + bias.y,
                           swish(product[2] + linear_bias.z) + bias.z, swish(product[3] + linear_bias.w) + bias.w);
    const float mean = group_sum((v.x + v.y) + (v.z + v.w)) / kGroup;
    v.x -= mean, v.y -= mean, v.z -= mean, v.w -= mean;
    const float inverse = rsqrtf(group_sum((v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w)) / kGroup + eps);
    return make_float4(v.x * inverse * gamma.x + beta.x, v.y * inverse * gamma.y + beta.y, v.z * inverse * gamma.z + beta.z,
                       v.w * inverse * gamma.w + beta.w);
  }
};
__device__ float4 four(const float* of, int channel, bool exist) {
  return exist ? *reinterpret_cast<const float4*>(of + channel) : make_float4(0, 0, 0, 0);
}

/// out [k, channels] = in [channels, k], transposed.
__global__ void turn(const float* __restrict__ in, float* __restrict__ out, int channels, int k) {
  __shared__ float tile[32][33];
  const int channel0 = blockIdx.y * 32, depth0 = blockIdx.x * 32;
  for (int i = threadIdx.y; i < 32; i += 8)
    if (channel0 + i < channels && depth0 + threadIdx.x < k) tile[i][threadIdx.x] = in[static_cast<int64_t>(channel0 + i) * k + depth0 + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8)
    if (depth0 + i < k && channel0 + threadIdx.x < channels)
      out[static_cast<int64_t>(depth0 + i) * channels + channel0 + threadIdx.x] = tile[threadIdx.x][i];
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    fused(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ linear_bias, const float* __restrict__ bias,
          const float* __restrict__ gamma, const float* __restrict__ beta, float* __restrict__ c, float eps, int m, int k, int n) {
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
    for (int p = 0; p < kGroupsM; ++p)
      a_values[slot][p] =
          *reinterpret_cast<const float4*>(a_tile(stage) + step * S::kRowA + my_offset(warp_row, lane_m, kLanesM, p));
#pragma unroll
    for (int q = 0; q < kGroupsN; ++q)
      b_values[slot][q] =
          *reinterpret_cast<const float4*>(b_tile(stage) + step * S::kTileN + my_offset(warp_column, lane_n, kLanesN, q));
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
    const int channel = column0 + my_offset(warp_column, lane_n, kLanesN, q);
    const bool exists = channel < n;  // for a whole group at once
    const Epilogue epilogue{four(linear_bias, channel, exists), four(bias, channel, exists), four(gamma, channel, exists),
                            four(beta, channel, exists), eps};
#pragma unroll
    for (int p = 0; p < kGroupsM; ++p)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = row0 + my_offset(warp_row, lane_m, kLanesM, p) + r;
        const float4 v = epilogue.apply(sum[p][r][q]);
        if (row < m && exists) __stcs(reinterpret_cast<float4*>(c + static_cast<int64_t>(row) * n + channel), v);
      }
  }
}

/// The turned weight.
extern "C" size_t workspace_bytes(int64_t /*rows*/, int64_t k, int64_t channels) { return static_cast<size_t>(k * channels) * sizeof(float); }

extern "C" void launch(const float* x /*[rows,k]*/, const float* weight /*[channels,k]*/,
                       const float* linear_bias /*[channels]*/, const float* bias /*[channels]*/,
                       const float* gamma /*[channels]*/, const float* beta /*[channels]*/, float* y /*[rows,channels]*/,
                       float eps, int64_t rows, int64_t k, int64_t channels, void* workspace, cudaStream_t stream) {
  float* turned = static_cast<float*>(workspace);
  const dim3 turns(static_cast<unsigned>((k + 31) / 32), static_cast<unsigned>((channels + 31) / 32));
  turn<<<turns, dim3(32, 8), 0, stream>>>(weight, turned, static_cast<int>(channels), static_cast<int>(k));
  const int64_t tiles = (rows + Tuned::kTileM - 1) / Tuned::kTileM * ((channels + Tuned::kTileN - 1) / Tuned::kTileN);
  cudaFuncSetAttribute(fused<Tuned>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tuned::kSharedBytes);
  fused<Tuned><<<static_cast<unsigned>(tiles), Tuned::kThreads, Tuned::kSharedBytes, stream>>>(
      x, turned, linear_bias, bias, gamma, beta, y, eps, static_cast<int>(rows), static_cast<int>(k), static_cast<int>(channels));
}
