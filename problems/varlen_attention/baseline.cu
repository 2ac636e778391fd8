// Native baseline: online softmax over tiles of 64 keys with fp32 multiply-adds, one block for each tile of
// queries, sequence and head. A library's products would have to know the lengths on the host.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kTile = 64, kThreads = 256;  // 16 x 16 threads with 4 x 4 scores each

template <int kDim>
constexpr int shared_bytes() {
  return (2 * kTile * kDim + kTile * (kDim + 1) + kTile * (kTile + 1)) * static_cast<int>(sizeof(float));
}

/// Rows of a head as floats; past the last one, zeros. Tokens are `stride` elements apart.
template <int kDim, int kPitch>
__device__ void fetch(float* to, const __nv_bfloat16* from, int64_t stride, int first, int rows) {
  for (int i = threadIdx.x; i < kTile * kDim; i += kThreads) {
    const int row = i / kDim, column = i % kDim;
    to[row * kPitch + column] =
        first + row < rows ? __bfloat162float(from[(first + row) * stride + column]) : 0.0f;
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads)
    attention(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, const int32_t* offsets,
              __nv_bfloat16* o, int64_t hq, int64_t hk, float factor) {
  const int start = offsets[blockIdx.y], length = offsets[blockIdx.y + 1] - start;
  const int first = static_cast<int>(blockIdx.x) * kTile, ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  if (first >= length) return;
  extern __shared__ float shared[];
  float* const queries = shared;                     // [kTile, kDim]
  float* const values = queries + kTile * kDim;      // [kTile, kDim]
  float* const keys = values + kTile * kDim;         // [kTile, kDim + 1]: 16 lanes read a column
  float* const weights = keys + kTile * (kDim + 1);  // [kTile, kTile + 1]
  const int64_t head = blockIdx.z, at_q = (start * hq + head) * kDim,
                at_k = (start * hk + head / (hq / hk)) * kDim;
  fetch<kDim, kDim>(queries, q + at_q, hq * kDim, first, length);
  float maximum[4], sum[4] = {}, result[4][kDim / 16] = {};
  for (float& m : maximum) m = -INFINITY;
  for (int begin = 0; begin < first + kTile && begin < length; begin += kTile) {
    __syncthreads();  // the tile before has been used
    fetch<kDim, kDim + 1>(keys, k + at_k, hk * kDim, begin, length);
    fetch<kDim, kDim>(values, v + at_k, hk * kDim, begin, length);
    __syncthreads();
    float s[4][4] = {};
    for (int x = 0; x < kDim; ++x)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          s[i][j] += queries[(ty * 4 + i) * kDim + x] * keys[(tx + j * 16) * (kDim + 1) + x];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float top = maximum[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (begin + tx + j * 16 > first + ty * 4 + i) s[i][j] = -INFINITY;
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
      for (int c = 0; c < kDim / 16; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          result[i][c] += weights[(ty * 4 + i) * (kTile + 1) + j] * values[j * kDim + tx + c * 16];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    for (int d = 8; d > 0; d /= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], d);
    const int row = first + ty * 4 + i;
    if (row < length)
#pragma unroll
      for (int c = 0; c < kDim / 16; ++c)
        o[at_q + row * hq * kDim + tx + c * 16] = __float2bfloat16(result[i][c] / sum[i]);
  }
}

}  // namespace

extern "C" const char* baseline_label() { return "native: one kernel, online softmax in fp32 tiles, bf16"; }

extern "C" void launch(const __nv_bfloat16* q /*[total,hq,d]*/, const __nv_bfloat16* k /*[total,hk,d]*/,
                       const __nv_bfloat16* v /*[total,hk,d]*/, const int32_t* cu_seqlens /*[segments + 1]*/,
                       __nv_bfloat16* o /*[total,hq,d]*/, int64_t total, int64_t hq, int64_t d, int64_t hk,
                       int64_t segments, void*, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((total + kTile - 1) / kTile), static_cast<unsigned>(segments),
                  static_cast<unsigned>(hq));
  const auto kernel = d == 64 ? attention<64> : attention<128>;
  const int bytes = d == 64 ? shared_bytes<64>() : shared_bytes<128>();
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<grid, kThreads, bytes, stream>>>(q, k, v, cu_seqlens, o, hq, hk,
                                            static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(d))));
}
