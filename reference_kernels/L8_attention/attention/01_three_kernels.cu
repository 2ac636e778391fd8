// Rung 1: scores, softmax, values: three kernels and a matrix between them.
//
// Changed     nothing yet: the formula, operator by operator. Scores are a tiled product in fp32 from shared
//             memory, the softmax goes over each row three times in place, the values are a tiled product
//             again.
// Why         the beginning of the ladder, and what a framework without a fused kernel does. The scores are n
//             x n for each head: 67 MB at 4096, for 2 MB of everything else.
// Prediction  the scores cross the memory bus six times; the products run on fp32 pipes from shared memory at
//             a tenth of their peak. About 5 TFLOP/s: a few percent of FlashAttention.
// Came        8.89 ms on an H100, 7.73 TFLOP/s. 13 % of the native baseline.
//
// Shapes      q, k, v, o [h, n, d], fp16, row-major; d a multiple of 32; h up to 65 535.
// Launch      scores: 32 x 32 threads over (n, n, h); softmax: 256 threads per row; values: 32 x 32 threads
//             over (d, n, h).
// Resources   about 40 registers; 8.3 KB of shared memory; 4 h n n bytes of workspace.
// Cost        4 h n n d FLOPs; 8 h n d bytes, and 24 h n n for the scores.
// Divides     d % 32 == 0 (the problem says so); n anything, tiles filled up with zeros.
// Source      A. Vaswani et al., "Attention Is All You Need", 2017; the tiles are those of sgemm's rung 3.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

constexpr int kTile = 32;
constexpr int kRowThreads = 256, kWarps = kRowThreads / 32;

/// scores[h, i, j] = factor * q[h, i, :] . k[h, j, :]
__global__ void scores_of(const __half* __restrict__ q, const __half* __restrict__ k, float* __restrict__ scores, float factor,
                          int64_t n, int64_t d) {
  __shared__ float q_tile[kTile][kTile], k_tile[kTile][kTile + 1];  // k is read by columns: padding
  const int64_t i = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t j0 = static_cast<int64_t>(blockIdx.x) * kTile, head = static_cast<int64_t>(blockIdx.z) * n;
  float sum = 0;
  for (int64_t x0 = 0; x0 < d; x0 += kTile) {
    const int64_t x = x0 + threadIdx.x;
    q_tile[threadIdx.y][threadIdx.x] = i < n ? __half2float(q[(head + i) * d + x]) : 0.0f;
    k_tile[threadIdx.y][threadIdx.x] = j0 + threadIdx.y < n ? __half2float(k[(head + j0 + threadIdx.y) * d + x]) : 0.0f;
    __syncthreads();  // the tiles are complete
    for (int p = 0; p < kTile; ++p) sum += q_tile[threadIdx.y][p] * k_tile[threadIdx.x][p];
    __syncthreads();  // nobody needs them any more
  }
  if (i < n && j0 + threadIdx.x < n) scores[(head + i) * n + j0 + threadIdx.x] = factor * sum;
}

struct Maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Combines the values of all threads; every thread gets the result. `partial` must not be in use.
template <class Combine>
__device__ float block_reduce(float v, float* partial, Combine combine) {
  for (int offset = 16; offset > 0; offset /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, offset));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[0];
  for (int warp = 1; warp < kWarps; ++warp) v = combine(v, partial[warp]);
  return v;
}

/// scores[row] becomes softmax(scores[row]). A thread reads and writes the same elements throughout.
__global__ void softmax_rows(float* scores, int64_t n) {
  __shared__ float partial[2][kWarps];
  float* row = scores + blockIdx.x * n;
  float maximum = -FLT_MAX, sum = 0;
  for (int64_t j = threadIdx.x; j < n; j += kRowThreads) maximum = fmaxf(maximum, row[j]);
  maximum = block_reduce(maximum, partial[0], Maximum());
  for (int64_t j = threadIdx.x; j < n; j += kRowThreads) sum += expf(row[j] - maximum);
  const float scale = 1 / block_reduce(sum, partial[1], Sum());
  for (int64_t j = threadIdx.x; j < n; j += kRowThreads) row[j] = expf(row[j] - maximum) * scale;
}

/// o[h, i, x] = sum_j weights[h, i, j] * v[h, j, x]
__global__ void values_of(const float* __restrict__ weights, const __half* __restrict__ v, __half* __restrict__ o, int64_t n,
                          int64_t d) {
  __shared__ float w_tile[kTile][kTile], v_tile[kTile][kTile];
  const int64_t i = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y, head = static_cast<int64_t>(blockIdx.z) * n;
  const int64_t x = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  float sum = 0;
  for (int64_t j0 = 0; j0 < n; j0 += kTile) {
    w_tile[threadIdx.y][threadIdx.x] = i < n && j0 + threadIdx.x < n ? weights[(head + i) * n + j0 + threadIdx.x] : 0.0f;
    v_tile[threadIdx.y][threadIdx.x] = j0 + threadIdx.y < n ? __half2float(v[(head + j0 + threadIdx.y) * d + x]) : 0.0f;
    __syncthreads();  // the tiles are complete
    for (int p = 0; p < kTile; ++p) sum += w_tile[threadIdx.y][p] * v_tile[p][threadIdx.x];
    __syncthreads();  // nobody needs them any more
  }
  if (i < n) o[(head + i) * d + x] = __float2half(sum);
}

extern "C" size_t workspace_bytes(int64_t h, int64_t n, int64_t /*d*/) {
  return static_cast<size_t>(h) * static_cast<size_t>(n) * static_cast<size_t>(n) * sizeof(float);
}

extern "C" void launch(const __half* q /*[h,n,d]*/, const __half* k /*[h,n,d]*/, const __half* v /*[h,n,d]*/,
                       __half* o /*[h,n,d]*/, int64_t h, int64_t n, int64_t d, void* workspace, cudaStream_t stream) {
  float* scores = static_cast<float*>(workspace);
  const dim3 block(kTile, kTile);
  const unsigned tiles = static_cast<unsigned>((n + kTile - 1) / kTile), heads = static_cast<unsigned>(h);
  scores_of<<<dim3(tiles, tiles, heads), block, 0, stream>>>(q, k, scores, 1 / std::sqrt(static_cast<float>(d)), n, d);
  softmax_rows<<<static_cast<unsigned>(h * n), kRowThreads, 0, stream>>>(scores, n);
  values_of<<<dim3(static_cast<unsigned>(d / kTile), tiles, heads), block, 0, stream>>>(scores, v, o, n, d);
}
