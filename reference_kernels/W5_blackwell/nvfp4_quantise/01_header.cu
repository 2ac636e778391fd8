// Rung 1: a thread a block of 16, and everything else from the header.
//
// Changed     the first of the ladder: a thread reads its 16 numbers twice, once for the maximum and once for
//             the codes, divides, and converts pairs with CUDA's __nv_fp4x2_e2m1.
// Why         it is the definition, and its types say what is stored: two codes in a byte.
// Prediction  the loads of a warp lie 32 bytes apart, so each touches 32 sectors, and a thread stores single
//             bytes 8 bytes apart. The conversion works on the bits of a double, some 40 instructions a
//             number. With the division about 70 instructions where 24 keep up with the memory: 180 us.
// Came        217 us on an H100, 794 GB/s. 94 % of the native baseline.
//
// Shapes      x [rows, cols] bf16, codes [rows, cols] e2m1x2, scales [rows, cols/16] e4m3.
// Launch      <<<rows * cols / 16 / 256, 256>>>.
// Resources   about 40 registers; no shared memory.
// Cost        3 * rows * cols FLOPs; 2.5625 * rows * cols bytes.
// Divides     cols % 16 == 0 (the problem says so); blocks are counted through all rows.
// Source      NVIDIA, "Introducing NVFP4 for efficient and accurate low-precision inference", 2025.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256, kBlock = 16;
constexpr float kLargest = 6;  // of e2m1

__global__ void quantise(const __nv_bfloat16* __restrict__ x, __nv_fp4x2_e2m1* __restrict__ codes,
                         __nv_fp8_e4m3* __restrict__ scales, int64_t blocks) {
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (block >= blocks) return;
  const __nv_bfloat16* const own = x + block * kBlock;
  float largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = fmaxf(largest, fabsf(__bfloat162float(own[i])));
  const __nv_fp8_e4m3 scale(largest / kLargest);  // to nearest, at most 448
  scales[block] = scale;
  const float divisor = static_cast<float>(scale);
  for (int i = 0; i < kBlock; i += 2) {
    float2 quotient = make_float2(0, 0);  // where the scale is 0
    if (divisor > 0)
      quotient = make_float2(__bfloat162float(own[i]) / divisor, __bfloat162float(own[i + 1]) / divisor);
    codes[(block * kBlock + i) / 2] = __nv_fp4x2_e2m1(quotient);  // .x into the low half
  }
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, __nv_fp4x2_e2m1* codes /*[rows,cols]*/,
                       __nv_fp8_e4m3* scales /*[rows,cols / 16]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const int64_t blocks = rows * cols / kBlock;
  quantise<<<static_cast<unsigned>((blocks + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      x, codes, scales, blocks);
}
