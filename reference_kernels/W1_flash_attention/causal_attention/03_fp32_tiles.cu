// Rung 3: the scores never leave the chip.
//
// Changed     one kernel. A block keeps 64 queries and takes the keys in tiles of 64: scores, then their part
//             of the softmax, then their part of the result. A running maximum and sum per row make one pass
//             enough.
// Why         rung 2 writes the scores that are not masked and reads them again: at n = 4096 that is 64 times
//             the size of q, k, v and o together.
// Prediction  5 to 15 TFLOP/s: traffic falls by a factor of 64, but all products are fp32 FMA.
// Came        17.4 TFLOP/s: 2.3x rung 2, counted over the pairs that are not masked.
//
// Shapes      q, k, v, o [h, n, d], fp16, row-major; query i sees keys 0 to i.
// Launch      256 threads per 64 queries; keys and values in tiles of 64.
// Resources   64 registers at d 64, 79 at d 128; 66 or 115 KB of shared memory; no workspace.
// Cost        2 h n (n + 1) d FLOPs and the masked half of the tiles on the diagonal; 8 h n d bytes.
// Divides     d is 64 or 128 (the problem says so); n anything.
// Source      online softmax: M. Milakov and N. Gimelshein (2018); FlashAttention, T. Dao et al. (2022).
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

constexpr bool kCausal = true;             // attention's rung 2 is this file with false
constexpr int kTile = 64, kThreads = 256;  // 16 x 16 threads with 4 x 4 scores each

template <int kDim>
constexpr int shared_bytes() {
  return (2 * kTile * kDim + kTile * (kDim + 1) + kTile * (kTile + 1)) * static_cast<int>(sizeof(float));
}

/// Rows of a head as floats; past the last one, zeros.
template <int kDim, int kPitch>
__device__ void fetch(float* to, const __half* from, int first, int n) {
  for (int i = threadIdx.x; i < kTile * kDim; i += kThreads) {
    const int row = i / kDim, column = i % kDim;
    to[row * kPitch + column] =
        first + row < n ? __half2float(from[static_cast<int64_t>(first + row) * kDim + column]) : 0.0f;
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads)
    attention(const __half* q, const __half* k, const __half* v, __half* o, int n, float factor) {
  extern __shared__ float shared[];
  float* const queries = shared;                     // [kTile, kDim]
  float* const values = queries + kTile * kDim;      // [kTile, kDim]
  float* const keys = values + kTile * kDim;         // [kTile, kDim + 1]: 16 lanes read a column
  float* const weights = keys + kTile * (kDim + 1);  // [kTile, kTile + 1]
  const int64_t head = static_cast<int64_t>(blockIdx.y) * n * kDim;
  const int first = blockIdx.x * kTile, ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  fetch<kDim, kDim>(queries, q + head, first, n);
  float maximum[4], sum[4] = {}, result[4][kDim / 16] = {};
  for (float& m : maximum) m = -INFINITY;
  const int end = kCausal && first + kTile < n ? first + kTile : n;
  for (int begin = 0; begin < end; begin += kTile) {
    __syncthreads();  // the tile before has been used
    fetch<kDim, kDim + 1>(keys, k + head, begin, n);
    fetch<kDim, kDim>(values, v + head, begin, n);
    __syncthreads();
    float s[4][4] = {};
    for (int x = 0; x < kDim; ++x) {
      float a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = queries[(ty * 4 + i) * kDim + x], b[i] = keys[(tx + i * 16) * (kDim + 1) + x];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) s[i][j] += a[i] * b[j];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float top = maximum[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int key = begin + tx + j * 16;
        if (key >= n || (kCausal && key > first + ty * 4 + i)) s[i][j] = -INFINITY;
        top = fmaxf(top, s[i][j]);
      }
      for (int d = 8; d > 0; d /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));  // the 16 threads of a row
      const float shrink =
          exp2f((maximum[i] - top) * factor);  // key 0 is visible to every query: top is finite
      maximum[i] = top;
      sum[i] *= shrink;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = exp2f((s[i][j] - top) * factor);
        sum[i] += weight;
        weights[(ty * 4 + i) * (kTile + 1) + tx + j * 16] = weight;
      }
#pragma unroll
      for (float& r : result[i]) r *= shrink;
    }
    __syncwarp();  // a row's weights are written and read by one half of a warp
    for (int j = 0; j < kTile; ++j)
#pragma unroll
      for (int c = 0; c < kDim / 16; ++c) {
        const float value = values[j * kDim + tx + c * 16];
#pragma unroll
        for (int i = 0; i < 4; ++i) result[i][c] += weights[(ty * 4 + i) * (kTile + 1) + j] * value;
      }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    for (int d = 8; d > 0; d /= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], d);
    if (first + ty * 4 + i < n)
#pragma unroll
      for (int c = 0; c < kDim / 16; ++c)
        o[head + static_cast<int64_t>(first + ty * 4 + i) * kDim + tx + c * 16] =
            __float2half(result[i][c] / sum[i]);
  }
}

template <int kDim>
void start(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n,
           cudaStream_t stream) {
  cudaFuncSetAttribute(attention<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<kDim>());
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>(h));
  attention<kDim><<<grid, kThreads, shared_bytes<kDim>(), stream>>>(
      q, k, v, o, static_cast<int>(n), static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kDim))));
}

extern "C" void launch(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n,
                       int64_t d, void*, cudaStream_t stream) {
  if (d == 64)
    start<64>(q, k, v, o, h, n, stream);
  else
    start<128>(q, k, v, o, h, n, stream);
}
