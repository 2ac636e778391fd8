// Rung 2: one kernel. The row waits in registers between the sum, the maxima and the codes.
//
// Changed     a thread keeps every 256th number of a row. The block adds up the squares, then the warps put
//             the maxima of their lanes into shared memory, four for each group, then each number becomes a
//             code.
// Why         rung 1 writes 4 bytes an element and reads them again: eight of its eleven bytes.
// Prediction  3 bytes an element: 3.6x, if 2-byte loads and 1-byte stores kept up; they will not. 2.5x.
// Came        231 us on an H100, 879 GB/s, 1.20 times the rung before. 112 % of the native baseline.
//
// Shapes      x [rows, cols], w [cols], bf16; codes [rows, cols], e4m3; scales [rows, cols/128], fp32.
// Launch      <<<rows, 256>>>.
// Resources   at most 96 registers, 64 of them numbers of a row; 1 KB of shared memory a 8192 columns.
// Cost        8 * rows * cols FLOPs; 3 * rows * cols bytes.
// Divides     cols % 128 == 0 (the problem says so); cols <= 16384.
// Source      the fusion of bias, GELU and LayerNorm in this session (bias_gelu_layernorm, rung 2).
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kMostNumbers = 64;  // of a thread
constexpr int kGroup = 128, kMostGroups = kMostNumbers * kThreads / kGroup;
constexpr float kLargest = 448, kLeast = 1e-10f;  // of e4m3; of a group's maximum, so that no scale is zero

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

template <int kNumbers>
__global__ void __launch_bounds__(kThreads)
    rmsnorm_fp8(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
                __nv_fp8_e4m3* __restrict__ codes, float* __restrict__ scales, float eps, int cols) {
  __shared__ float maxima[kMostGroups][kGroup / 32];  // of 32 neighbours each
  const int64_t start = static_cast<int64_t>(blockIdx.x) * cols;
  const int lane = threadIdx.x % 32;
  float held[kNumbers], squares = 0;
#pragma unroll
  for (int k = 0; k < kNumbers; ++k) {
    const int i = threadIdx.x + k * kThreads;
    held[k] = i < cols ? __bfloat162float(x[start + i]) : 0.0f;
    squares += held[k] * held[k];
  }
  const float norm = rsqrtf(block_sum(squares) / static_cast<float>(cols) + eps);
#pragma unroll
  for (int k = 0; k < kNumbers; ++k) {
    const int i = threadIdx.x + k * kThreads;
    if (i < cols) held[k] *= norm * __bfloat162float(w[i]);
    float largest = fabsf(held[k]);
    for (int offset = 16; offset > 0; offset /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
    if (lane == 0) maxima[i / kGroup][i % kGroup / 32] = largest;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kNumbers; ++k) {
    const int i = threadIdx.x + k * kThreads;
    if (i >= cols) continue;
    const float* of_group = maxima[i / kGroup];
    const float largest = fmaxf(fmaxf(of_group[0], of_group[1]), fmaxf(of_group[2], of_group[3]));
    const float scale = fmaxf(largest, kLeast) / kLargest;
    codes[start + i] = __nv_fp8_e4m3(held[k] / scale);
    if (i % kGroup == 0) scales[(start + i) / kGroup] = scale;
  }
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, const __nv_bfloat16* w /*[cols]*/,
                       __nv_fp8_e4m3* codes /*[rows,cols]*/, float* scales /*[rows,cols / 128]*/, float eps,
                       int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  const auto kernel = cols <= 8 * kThreads    ? rmsnorm_fp8<8>
                      : cols <= 16 * kThreads ? rmsnorm_fp8<16>
                      : cols <= 32 * kThreads ? rmsnorm_fp8<32>
                                              : rmsnorm_fp8<kMostNumbers>;
  kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, w, codes, scales, eps,
                                                               static_cast<int>(cols));
}
