// Rung 1: product, scores, softmax, values, product.
//
// Changed     nothing yet: the formulas, operator by operator. All products go through one tile of shared
//             memory, an element per thread; heads are read where they lie in the projection's result.
// Why         the beginning of the ladder, and what a framework without fused kernels does, less its
//             transposes.
// Prediction  the products run on fp32 pipes from shared memory at a tenth of their peak, and 134 MB of
//             scores cross the bus four times: a sixth of eager PyTorch.
//
// Shapes      x, y [b, t, h d]; weights [outputs, inputs]; fp32, row-major; d a multiple of 32; b h up to 65
//             535.
// Launch      products: 32 x 32 threads over (columns, rows); softmax: 256 threads per row.
// Resources   about 40 registers; 8.3 KB of shared memory; 4 b t (4 h d + h t) bytes of workspace.
// Cost        8 b t (h d)^2 + 4 b h t t d FLOPs.
// Divides     d % 32 == 0 (the problem says so); t anything.
// Source      A. Karpathy, minGPT, for the block; the tiles are those of sgemm's rung 3.
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int kTile = 32, kRowThreads = 256, kWarps = kRowThreads / 32;

/// to[row, column] = factor * a[row, :] . w[column, :] (+ bias[column]); every matrix has its own stride.
__global__ void rows_by_rows(const float* __restrict__ a, int64_t a_stride, const float* __restrict__ w, int64_t w_stride, const float* __restrict__ bias, float* __restrict__ to,
                             int64_t to_stride, float factor, int64_t rows, int64_t columns, int64_t depth, int64_t heads, int64_t a_batch, int64_t a_head, int64_t w_batch,
                             int64_t w_head, int64_t to_head) {
  __shared__ float a_tile[kTile][kTile], w_tile[kTile][kTile + 1];  // w is read by columns: padding
  const int64_t batch = blockIdx.z / heads, head = blockIdx.z % heads;
  a += batch * a_batch + head * a_head;
  w += batch * w_batch + head * w_head;
  to += blockIdx.z * to_head;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y, column0 = static_cast<int64_t>(blockIdx.x) * kTile, column = column0 + threadIdx.x;
  float sum = 0;
  for (int64_t x0 = 0; x0 < depth; x0 += kTile) {
    a_tile[threadIdx.y][threadIdx.x] = row < rows ? a[row * a_stride + x0 + threadIdx.x] : 0.0f;
    w_tile[threadIdx.y][threadIdx.x] = column0 + threadIdx.y < columns ? w[(column0 + threadIdx.y) * w_stride + x0 + threadIdx.x] : 0.0f;
    __syncthreads();  // the tiles are complete
    for (int p = 0; p < kTile; ++p) sum += a_tile[threadIdx.y][p] * w_tile[threadIdx.x][p];
    __syncthreads();  // nobody needs them any more
  }
  if (row < rows && column < columns) to[row * to_stride + column] = factor * sum + (bias != nullptr ? bias[column] : 0.0f);
}

/// scores[row] becomes its softmax over the keys up to the query, 0 behind them. One block per row.
__global__ void softmax_rows(float* scores, int64_t t) {
  __shared__ float partial[2][kWarps];
  float* row = scores + blockIdx.x * t;
  const int64_t keys = blockIdx.x % t + 1;
  float maximum = -FLT_MAX, sum = 0;
  for (int64_t j = threadIdx.x; j < keys; j += kRowThreads) maximum = fmaxf(maximum, row[j]);
  for (int offset = 16; offset > 0; offset /= 2) maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, offset));
  if (threadIdx.x % 32 == 0) partial[0][threadIdx.x / 32] = maximum;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) maximum = fmaxf(maximum, partial[0][warp]);
  for (int64_t j = threadIdx.x; j < keys; j += kRowThreads) sum += expf(row[j] - maximum);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[1][threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += partial[1][warp];
  for (int64_t j = threadIdx.x; j < t; j += kRowThreads) row[j] = j < keys ? expf(row[j] - maximum) / sum : 0.0f;
}

/// attended[b, i, head, x] = sum_j weights[b, head, i, j] * v[b, j, head, x], j <= i
__global__ void values_of(const float* __restrict__ weights, const float* __restrict__ qkv, float* __restrict__ attended, int64_t t, int64_t h, int64_t d) {
  __shared__ float w_tile[kTile][kTile], v_tile[kTile][kTile];
  const int64_t batch = blockIdx.z / h, head = blockIdx.z % h, channels = h * d;
  const float* v = qkv + batch * t * 3 * channels + 2 * channels + head * d;
  const int64_t i = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y, x = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  float sum = 0;
  for (int64_t j0 = 0; j0 < t; j0 += kTile) {
    w_tile[threadIdx.y][threadIdx.x] = i < t && j0 + threadIdx.x < t ? weights[(blockIdx.z * t + i) * t + j0 + threadIdx.x] : 0.0f;
    v_tile[threadIdx.y][threadIdx.x] = j0 + threadIdx.y < t ? v[(j0 + threadIdx.y) * 3 * channels + x] : 0.0f;
    __syncthreads();  // the tiles are complete
    for (int p = 0; p < kTile; ++p) sum += w_tile[threadIdx.y][p] * v_tile[p][threadIdx.x];
    __syncthreads();  // nobody needs them any more
  }
  if (i < t) attended[(batch * t + i) * channels + head * d + x] = sum;
}

extern "C" size_t workspace_bytes(int64_t b, int64_t t, int64_t h, int64_t d) { return static_cast<size_t>(b * t * (4 * h * d + h * t)) * sizeof(float); }

extern "C" void launch(const float* x /*[b,t,h*d]*/, const float* w_qkv /*[3*h*d,h*d]*/, const float* b_qkv /*[3*h*d]*/, const float* w_proj /*[h*d,h*d]*/,
                       const float* b_proj /*[h*d]*/, float* y /*[b,t,h*d]*/, int64_t b, int64_t t, int64_t h, int64_t d, void* workspace,
                       cudaStream_t stream) {
  const int64_t tokens = b * t, channels = h * d;
  float* qkv = static_cast<float*>(workspace);
  float* attended = qkv + 3 * tokens * channels;
  float* scores = attended + tokens * channels;
  const dim3 block(kTile, kTile);
  auto tiles = [](int64_t n) { return static_cast<unsigned>((n + kTile - 1) / kTile); };
  const unsigned heads = static_cast<unsigned>(b * h);
  rows_by_rows<<<dim3(tiles(3 * channels), tiles(tokens)), block, 0, stream>>>(x, channels, w_qkv, channels, b_qkv, qkv, 3 * channels, 1, tokens, 3 * channels, channels, 1, 0, 0,
                                                                               0, 0, 0);
  rows_by_rows<<<dim3(tiles(t), tiles(t), heads), block, 0, stream>>>(qkv, 3 * channels, qkv + channels, 3 * channels, nullptr, scores, t, 1 / std::sqrt(static_cast<float>(d)), t, t,
                                                                      d, h, 3 * t * channels, d, 3 * t * channels, d, t * t);
  softmax_rows<<<static_cast<unsigned>(b * h * t), kRowThreads, 0, stream>>>(scores, t);
  values_of<<<dim3(tiles(d), tiles(t), heads), block, 0, stream>>>(scores, qkv, attended, t, h, d);
  rows_by_rows<<<dim3(tiles(channels), tiles(tokens)), block, 0, stream>>>(attended, channels, w_proj, channels, b_proj, y, channels, 1, tokens, channels, channels, 1, 0, 0, 0, 0, 0);
}
