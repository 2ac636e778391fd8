// Native baseline: a warp a row, 16-byte loads; codes are converted by CUDA's header, which on Blackwell
// takes one instruction for two of them and before works on their bits. Products in fp16 are exact, sums are
// in fp32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kWarps = 8, kBlock = 16;

__global__ void __launch_bounds__(kWarps * 32)
    gemv(const uint2* __restrict__ a, const __nv_fp8_e4m3* __restrict__ sfa, const uint2* __restrict__ x,
         const __nv_fp8_e4m3* __restrict__ sfx, __nv_bfloat16* __restrict__ y, int64_t m, int64_t blocks) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= m) return;
  const int64_t matrix = blockIdx.y;
  a += (matrix * m + row) * blocks, sfa += (matrix * m + row) * blocks;
  x += matrix * blocks, sfx += matrix * blocks;
  float sum = 0;
  for (int64_t block = threadIdx.x % 32; block < blocks; block += 32) {
    const uint2 codes = a[block], others = x[block];
    float of_block = 0;
#pragma unroll
    for (int i = 0; i < kBlock / 2; ++i) {
      const unsigned shift = i % 4 * 8;
      const unsigned pair = (i < 4 ? codes.x : codes.y) >> shift,
                     other = (i < 4 ? others.x : others.y) >> shift;
      const __half2 p(__nv_cvt_fp4x2_to_halfraw2(static_cast<__nv_fp4x2_storage_t>(pair & 255u), __NV_E2M1));
      const __half2 q(__nv_cvt_fp4x2_to_halfraw2(static_cast<__nv_fp4x2_storage_t>(other & 255u), __NV_E2M1));
      const float2 products = __half22float2(__hmul2(p, q));
      of_block += products.x + products.y;
    }
    sum += of_block * (static_cast<float>(sfa[block]) * static_cast<float>(sfx[block]));
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) y[matrix * m + row] = __float2bfloat16(sum);
}

}  // namespace

extern "C" const char* baseline_label() { return "native: a warp a row, CUDA's conversion from FP4"; }

extern "C" void launch(const __nv_fp4x2_e2m1* a /*[l,m,k]*/, const __nv_fp8_e4m3* sfa /*[l,m,k / 16]*/,
                       const __nv_fp4x2_e2m1* x /*[l,k]*/, const __nv_fp8_e4m3* sfx /*[l,k / 16]*/,
                       __nv_bfloat16* y /*[l,m]*/, int64_t l, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((m + kWarps - 1) / kWarps), static_cast<unsigned>(l));
  gemv<<<grid, kWarps * 32, 0, stream>>>(reinterpret_cast<const uint2*>(a), sfa,
                                         reinterpret_cast<const uint2*>(x), sfx, y, m, k / kBlock);
}
