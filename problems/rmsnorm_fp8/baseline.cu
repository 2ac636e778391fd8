// Native baseline: two operators, two kernels.
//
// The first normalises a row, 16 bytes at a time, and writes it in fp32, because a second rounding would
// change codes. The second takes a group of 128 with eight lanes, finds the maximum and writes 16 codes a
// lane. Each kernel is as good as that division allows. What is left to win is the detour of the row: eight
// of eleven bytes an element.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kVectors = 8;  // of a thread, at most
constexpr int kOwn = 16, kLanes = 128 / kOwn;
constexpr float kLargest = 448, kLeast = 1e-10f;

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ float squares(unsigned word) { return low(word) * low(word) + high(word) * high(word); }
__device__ float4 scaled(unsigned x, unsigned x2, unsigned w, unsigned w2, float scale) {
  return make_float4(low(x) * scale * low(w), high(x) * scale * high(w), low(x2) * scale * low(w2),
                     high(x2) * scale * high(w2));
}

/// The sum of `v` over the block, in every thread.
__device__ float block_sum(float v) {
  __shared__ float partial[kWarps];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += partial[warp];
  return sum;
}

__global__ void __launch_bounds__(kThreads) rmsnorm(const uint4* __restrict__ x, const uint4* __restrict__ w,
                                                    float4* __restrict__ y, float eps, int vectors) {
  const int64_t start = static_cast<int64_t>(blockIdx.x) * vectors;
  uint4 held[kVectors];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kThreads;
    held[k] = i < vectors ? x[start + i] : make_uint4(0, 0, 0, 0);
    sum += squares(held[k].x) + squares(held[k].y) + squares(held[k].z) + squares(held[k].w);
  }
  const float scale = rsqrtf(block_sum(sum) / static_cast<float>(8 * vectors) + eps);
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int i = threadIdx.x + k * kThreads;
    if (i >= vectors) continue;
    const uint4 weight = w[i];
    y[2 * (start + i)] = scaled(held[k].x, held[k].y, weight.x, weight.y, scale);
    y[2 * (start + i) + 1] = scaled(held[k].z, held[k].w, weight.z, weight.w, scale);
  }
}

__device__ unsigned codes_of(float4 v, float reciprocal) {
  const unsigned first =
      __nv_cvt_float2_to_fp8x2(make_float2(v.x * reciprocal, v.y * reciprocal), __NV_SATFINITE, __NV_E4M3);
  const unsigned second =
      __nv_cvt_float2_to_fp8x2(make_float2(v.z * reciprocal, v.w * reciprocal), __NV_SATFINITE, __NV_E4M3);
  return first | second << 16;
}

/// A thread takes 16 neighbours of all rows, one after the other; `pieces` of them.
__global__ void __launch_bounds__(kThreads) quantise(const float4* __restrict__ y, uint4* __restrict__ codes,
                                                     float* __restrict__ scales, int64_t pieces) {
  const int64_t piece = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  float4 v[kOwn / 4] = {};
  float largest = kLeast;
#pragma unroll
  for (int k = 0; k < kOwn / 4; ++k) {
    if (piece < pieces) v[k] = y[piece * (kOwn / 4) + k];
    largest = fmaxf(largest, fmaxf(fmaxf(fabsf(v[k].x), fabsf(v[k].y)), fmaxf(fabsf(v[k].z), fabsf(v[k].w))));
  }
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  if (piece >= pieces) return;
  const float reciprocal = kLargest / largest;
  codes[piece] = make_uint4(codes_of(v[0], reciprocal), codes_of(v[1], reciprocal),
                            codes_of(v[2], reciprocal), codes_of(v[3], reciprocal));
  if (piece % kLanes == 0) scales[piece / kLanes] = largest * (1 / kLargest);
}

}  // namespace

extern "C" const char* baseline_label() {
  return "native: 2 kernels (RMSNorm to fp32, group quantisation to e4m3)";
}

extern "C" size_t workspace_bytes(int64_t rows, int64_t cols) {
  return static_cast<size_t>(rows * cols) * sizeof(float);
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, const __nv_bfloat16* w /*[cols]*/,
                       __nv_fp8_e4m3* codes /*[rows,cols]*/, float* scales /*[rows,cols / 128]*/, float eps,
                       int64_t rows, int64_t cols, void* workspace, cudaStream_t stream) {
  auto* const y = static_cast<float4*>(workspace);
  const int64_t pieces = rows * cols / kOwn;
  rmsnorm<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(x),
                                                                reinterpret_cast<const uint4*>(w), y, eps,
                                                                static_cast<int>(cols / 8));
  quantise<<<static_cast<unsigned>((pieces + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      y, reinterpret_cast<uint4*>(codes), scales, pieces);
}
