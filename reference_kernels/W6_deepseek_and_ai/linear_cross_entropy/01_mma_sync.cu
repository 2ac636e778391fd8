// Rung 1: a matrix product whose tiles end as two numbers a row.
//
// Changed     -
// Why         the loss needs of a row of logits its maximum, the sum of exponentials and one number. A tile
//             of the product has 128 logits of each of its rows in registers: it keeps the maximum and the
//             sum, and writes 8 bytes instead of 256. A second kernel merges what the tiles of a row left.
// Prediction  8 to 12 ms: mma.sync reaches half of the tensor cores' rate on Hopper, and every block waits
//             for its tiles.
//
// Shapes      x [t, h], w [v, h], bf16, row-major; target [t], int32; loss, lse [t], fp32.
// Launch      one block of 256 threads a tile of 128 x 128; a warp computes 64 x 32. Then a thread a row and
//             part.
// Resources   64 sums a thread; 36 KB of shared memory; workspace: a pair for each row and tile, and t
//             floats.
// Cost        2 t h v + 7 t v FLOPs; t h v / 32 bytes of global loads; t v / 16 bytes of pairs written.
// Divides     h % 8 == 0 (the problem says so); t and v anything: rows outside count as zero, classes outside
//             as -1e30.
// Source      merging pairs (maximum, sum): M. Milakov, N. Gimelshein, "Online normalizer calculation for
//             softmax", 2018. Needs sm_80.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

using bf16 = __nv_bfloat16;

constexpr int kTile = 128, kDepth = 64, kThreads = 256, kWarpM = 64, kWarpN = 32;
constexpr int kPitch = kDepth + 8;  // 36 words: the eight rows that a warp reads at once meet all banks
constexpr float kNone = -1e30f;     // less than every logit, and its difference to itself is a number
constexpr float kLog2E = 1.44269504f;

/// Rows `first` … of a matrix, `depth` … of each; zeros outside.
__device__ void fetch(bf16* tile, const bf16* matrix, int64_t first, int64_t rows, int64_t depth, int64_t h) {
  for (int i = threadIdx.x; i < kTile * kDepth / 8; i += kThreads) {
    const int row = i / (kDepth / 8), piece = i % (kDepth / 8) * 8;
    uint4 value = {};
    if (first + row < rows && depth + piece < h)
      value = *reinterpret_cast<const uint4*>(matrix + (first + row) * h + depth + piece);
    *reinterpret_cast<uint4*>(tile + row * kPitch + piece) = value;
  }
}

/// d += a * b: 16 x 8 results, 16 deep, by one warp.
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// A maximum, and the sum of exponentials of differences to it.
struct Pair {
  float maximum, sum;
};
__device__ Pair merge(Pair a, Pair b) {
  const float maximum = fmaxf(a.maximum, b.maximum);
  return {maximum,
          a.sum * exp2f((a.maximum - maximum) * kLog2E) + b.sum * exp2f((b.maximum - maximum) * kLog2E)};
}

/// pairs: [tile of classes][row]; chosen: the logit of the row's class, if it has one.
__global__ void __launch_bounds__(kThreads)
    product(const bf16* __restrict__ x, const bf16* __restrict__ w, const int32_t* __restrict__ target,
            Pair* __restrict__ pairs, float* __restrict__ chosen, int64_t t, int64_t h, int64_t v) {
  __shared__ __align__(16) bf16 x_tile[kTile * kPitch], w_tile[kTile * kPitch];
  __shared__ Pair of_warps[kTile / kWarpN][kTile];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kTile,
                column = static_cast<int64_t>(blockIdx.y) * kTile;
  const int warp = threadIdx.x / 32, near = threadIdx.x % 4,
            far = threadIdx.x % 32 / 4;  // far: of eight rows, near: of four words
  const int my_row = warp % 2 * kWarpM, my_column = warp / 2 * kWarpN;  // in the tile
  const auto word = [&](const bf16* tile, int at, int depth) {
    return *reinterpret_cast<const uint32_t*>(tile + at * kPitch + depth + near * 2);
  };

  float z[kWarpM / 16][kWarpN / 8][4] = {};
  for (int64_t first = 0; first < h; first += kDepth) {
    fetch(x_tile, x, row, t, first, h);
    fetch(w_tile, w, column, v, first, h);
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < kDepth; depth += 16) {
      uint32_t right[kWarpN / 8][2];
#pragma unroll
      for (int j = 0; j < kWarpN / 8; ++j)
        for (int half = 0; half < 2; ++half)
          right[j][half] = word(w_tile, my_column + j * 8 + far, depth + half * 8);
#pragma unroll
      for (int i = 0; i < kWarpM / 16; ++i) {
        const int at = my_row + i * 16 + far;
        const uint32_t left[4] = {word(x_tile, at, depth), word(x_tile, at + 8, depth),
                                  word(x_tile, at, depth + 8), word(x_tile, at + 8, depth + 8)};
#pragma unroll
        for (int j = 0; j < kWarpN / 8; ++j) multiply(z[i][j], left, right[j]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kWarpM / 16; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // a lane holds eight logits in each of its rows
      const int in_tile = my_row + i * 16 + half * 8 + far;
      const int64_t mine = row + in_tile < t ? target[row + in_tile] : -1;
      Pair pair{kNone, 0};
#pragma unroll
      for (int j = 0; j < kWarpN / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int64_t at = column + my_column + j * 8 + near * 2 + e;
          float& logit = z[i][j][half * 2 + e];
          if (at >= v) logit = kNone;
          if (at < v && at == mine) chosen[row + in_tile] = logit;
          pair.maximum = fmaxf(pair.maximum, logit);
        }
#pragma unroll
      for (int j = 0; j < kWarpN / 8; ++j)
        for (int e = 0; e < 2; ++e) pair.sum += exp2f((z[i][j][half * 2 + e] - pair.maximum) * kLog2E);
#pragma unroll
      for (int offset = 1; offset < 4; offset *= 2)
        pair = merge(pair, {__shfl_xor_sync(0xffffffffu, pair.maximum, offset),
                            __shfl_xor_sync(0xffffffffu, pair.sum, offset)});
      if (near == 0) of_warps[warp / 2][in_tile] = pair;
    }
  __syncthreads();
  if (threadIdx.x < kTile && row + threadIdx.x < t) {
    Pair pair = of_warps[0][threadIdx.x];
    for (int i = 1; i < kTile / kWarpN; ++i) pair = merge(pair, of_warps[i][threadIdx.x]);
    pairs[blockIdx.y * t + row + threadIdx.x] = pair;
  }
}

constexpr int kRows = 32, kParts = 8;  // of a block that merges

__global__ void merge_tiles(const Pair* __restrict__ pairs, const float* __restrict__ chosen,
                            const int32_t* __restrict__ target, float* __restrict__ loss,
                            float* __restrict__ lse, int64_t t, int64_t v, int64_t tiles) {
  __shared__ Pair of_parts[kParts][kRows];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x;
  Pair pair{kNone, 0};
  if (row < t)
    for (int64_t tile = threadIdx.y; tile < tiles; tile += kParts) pair = merge(pair, pairs[tile * t + row]);
  of_parts[threadIdx.y][threadIdx.x] = pair;
  __syncthreads();
  if (threadIdx.y > 0 || row >= t) return;
  for (int i = 1; i < kParts; ++i) pair = merge(pair, of_parts[i][threadIdx.x]);
  const float total = pair.maximum + logf(pair.sum);
  lse[row] = total;
  loss[row] = target[row] >= 0 && target[row] < v ? total - chosen[row] : 0.0f;
}

int64_t tiles_of(int64_t v) { return (v + kTile - 1) / kTile; }

extern "C" size_t workspace_bytes(int64_t t, int64_t /*h*/, int64_t v) {
  return static_cast<size_t>(t) * (static_cast<size_t>(tiles_of(v)) * sizeof(Pair) + sizeof(float));
}

extern "C" void launch(const bf16* x /*[t,h]*/, const bf16* w /*[v,h]*/, const int32_t* target /*[t]*/,
                       float* loss /*[t]*/, float* lse /*[t]*/, int64_t t, int64_t h, int64_t v,
                       void* workspace, cudaStream_t stream) {
  const int64_t tiles = tiles_of(v);
  Pair* const pairs = static_cast<Pair*>(workspace);
  float* const chosen = reinterpret_cast<float*>(pairs + tiles * t);
  const dim3 grid(static_cast<unsigned>((t + kTile - 1) / kTile), static_cast<unsigned>(tiles));
  product<<<grid, kThreads, 0, stream>>>(x, w, target, pairs, chosen, t, h, v);
  merge_tiles<<<static_cast<unsigned>((t + kRows - 1) / kRows), dim3(kRows, kParts), 0, stream>>>(
      pairs, chosen, target, loss, lse, t, v, tiles);
}
