// Native baseline: row-wise softmax, fp32, as good as a framework's own kernel.
//
// Three kernels, chosen by the length of a row, as PyTorch chooses:
//   cols <= 1024           one warp a row, the row in registers; read once
//   row fits 48 KB shared  one block a row, the row in shared memory; read once
//   longer                 one block a row, online maximum and sum, then a second read to write
// Traffic: 2 * rows * cols floats, 3 * rows * cols for the long rows.
#include <cuda_runtime.h>

#include <cfloat>
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kWarpColumns = 1024;      // 32 values a lane
constexpr int kSharedColumns = 11776;   // 46 KB: leaves room for the partial results below 48 KB
constexpr unsigned kAllLanes = 0xffffffffu;

__device__ float warp_max(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, offset));
  return v;
}

__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(kAllLanes, v, offset);
  return v;
}

/// One warp a row, `kPerLane` values a lane in registers: cols <= 32 * kPerLane.
template <int kPerLane>
__global__ void softmax_warp(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int cols) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;  // a whole warp leaves together
  const float* from = x + row * cols;
  float value[kPerLane];
  float maximum = -FLT_MAX;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int column = i * 32 + threadIdx.x;
    value[i] = column < cols ? from[column] : -FLT_MAX;
    maximum = fmaxf(maximum, value[i]);
  }
  maximum = warp_max(maximum);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int column = i * 32 + threadIdx.x;
    value[i] = column < cols ? expf(value[i] - maximum) : 0.0f;
    sum += value[i];
  }
  const float scale = 1.0f / warp_sum(sum);
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int column = i * 32 + threadIdx.x;
    if (column < cols) y[row * cols + column] = value[i] * scale;
  }
}

/// Combines the warps' results; every thread gets the answer. `partial` [32] must not be in use.
template <class Reduce>
__device__ float across_warps(float v, float neutral, float* partial, Reduce reduce) {
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : neutral;
  return reduce(v);
}

/// One block a row; the row waits in shared memory between its one read and its one write.
template <bool kVector>
__global__ void softmax_shared(const float* __restrict__ x, float* __restrict__ y, int cols) {
  extern __shared__ float4 cache4[];
  __shared__ float partial[2][32];
  float* cache = reinterpret_cast<float*>(cache4);
  const float* from = x + static_cast<int64_t>(blockIdx.x) * cols;
  float* to = y + static_cast<int64_t>(blockIdx.x) * cols;
  const int vectors = kVector ? cols / 4 : 0;

  float maximum = -FLT_MAX;
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 v = reinterpret_cast<const float4*>(from)[i];
    cache4[i] = v;
    maximum = fmaxf(maximum, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  for (int i = vectors * 4 + threadIdx.x; i < cols; i += blockDim.x) maximum = fmaxf(maximum, cache[i] = from[i]);
  maximum = across_warps(warp_max(maximum), -FLT_MAX, partial[0], warp_max);

  float sum = 0;
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 v = cache4[i];
    const float4 e = make_float4(expf(v.x - maximum), expf(v.y - maximum), expf(v.z - maximum), expf(v.w - maximum));
    cache4[i] = e;
    sum += (e.x + e.y) + (e.z + e.w);
  }
  for (int i = vectors * 4 + threadIdx.x; i < cols; i += blockDim.x) sum += cache[i] = expf(cache[i] - maximum);
  const float scale = 1.0f / across_warps(warp_sum(sum), 0.0f, partial[1], warp_sum);

  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 e = cache4[i];
    reinterpret_cast<float4*>(to)[i] = make_float4(e.x * scale, e.y * scale, e.z * scale, e.w * scale);
  }
  for (int i = vectors * 4 + threadIdx.x; i < cols; i += blockDim.x) to[i] = cache[i] * scale;
}

/// Adds one value to a running (maximum, sum of exponentials about it).
__device__ void accumulate(float v, float& maximum, float& sum) {
  const float larger = fmaxf(maximum, v);
  sum = sum * expf(maximum - larger) + expf(v - larger);
  maximum = larger;
}

/// One block a row of any length: maximum and sum in one pass, the result in a second.
template <bool kVector>
__global__ void softmax_online(const float* __restrict__ x, float* __restrict__ y, int64_t cols) {
  __shared__ float partial[2][32];
  const float* from = x + blockIdx.x * cols;
  float* to = y + blockIdx.x * cols;
  const int64_t vectors = kVector ? cols / 4 : 0;

  float maximum = -FLT_MAX, sum = 0;
  for (int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 v = reinterpret_cast<const float4*>(from)[i];
    const float larger = fmaxf(maximum, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    sum = sum * expf(maximum - larger) +
          ((expf(v.x - larger) + expf(v.y - larger)) + (expf(v.z - larger) + expf(v.w - larger)));
    maximum = larger;
  }
  for (int64_t i = vectors * 4 + threadIdx.x; i < cols; i += blockDim.x) accumulate(from[i], maximum, sum);
  const float row_maximum = across_warps(warp_max(maximum), -FLT_MAX, partial[0], warp_max);
  sum *= expf(maximum - row_maximum);
  const float scale = 1.0f / across_warps(warp_sum(sum), 0.0f, partial[1], warp_sum);

  for (int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 v = reinterpret_cast<const float4*>(from)[i];
    reinterpret_cast<float4*>(to)[i] = make_float4(expf(v.x - row_maximum) * scale, expf(v.y - row_maximum) * scale,
                                                   expf(v.z - row_maximum) * scale, expf(v.w - row_maximum) * scale);
  }
  for (int64_t i = vectors * 4 + threadIdx.x; i < cols; i += blockDim.x) to[i] = expf(from[i] - row_maximum) * scale;
}

template <int kPerLane>
void launch_warp(const float* x, float* y, int64_t rows, int cols, cudaStream_t stream) {
  const dim3 block(32, 4);
  softmax_warp<kPerLane><<<static_cast<unsigned>((rows + 3) / 4), block, 0, stream>>>(x, y, rows, cols);
}

}  // namespace

extern "C" const char* baseline_label() { return "native softmax: row in registers or shared memory, fp32"; }

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[rows,cols]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  const int columns = static_cast<int>(cols);
  const bool aligned = cols % 4 == 0;
  if (cols <= kWarpColumns) {
    if (cols <= 128) return launch_warp<4>(x, y, rows, columns, stream);
    if (cols <= 256) return launch_warp<8>(x, y, rows, columns, stream);
    if (cols <= 512) return launch_warp<16>(x, y, rows, columns, stream);
    return launch_warp<32>(x, y, rows, columns, stream);
  }
  if (cols <= kSharedColumns) {
    const size_t bytes = static_cast<size_t>(cols) * sizeof(float);
    if (aligned)
      softmax_shared<true><<<blocks, 512, bytes, stream>>>(x, y, columns);
    else
      softmax_shared<false><<<blocks, 512, bytes, stream>>>(x, y, columns);
    return;
  }
  if (aligned)
    softmax_online<true><<<blocks, 1024, 0, stream>>>(x, y, cols);
  else
    softmax_online<false><<<blocks, 1024, 0, stream>>>(x, y, cols);
}
