// Native baseline: tiles of 16 x 16 results, codes converted by CUDA's header and scaled on their way to
// shared memory; products and sums in fp32. It runs on any GPU.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kTile = 16;  // also the numbers that share a scale

/// The number at (row, block * 16 + i), scaled.
__device__ float number(const uint8_t* codes, const __nv_fp8_e4m3* scales, int64_t row, int64_t block, int i,
                        int64_t blocks) {
  const unsigned pair = codes[(row * blocks + block) * (kTile / 2) + i / 2];
  const __half_raw bits =
      __nv_cvt_fp4_to_halfraw(static_cast<__nv_fp4_storage_t>(pair >> (i % 2 * 4) & 15u), __NV_E2M1);
  const int64_t tile = row / 128 * (blocks / 4) + block / 4, r = row % 128;
  return __half2float(__half(bits)) *
         static_cast<float>(scales[tile * 512 + r % 32 * 16 + r / 32 * 4 + block % 4]);
}

__global__ void tiled(const uint8_t* __restrict__ a, const __nv_fp8_e4m3* __restrict__ sfa,
                      const uint8_t* __restrict__ b, const __nv_fp8_e4m3* __restrict__ sfb,
                      __nv_bfloat16* __restrict__ c, int64_t m, int64_t blocks, int64_t n) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const int64_t b_row = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.y;
  const int i = static_cast<int>(threadIdx.x);
  float sum = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    a_tile[threadIdx.y][i] = row < m ? number(a, sfa, row, block, i, blocks) : 0.0f;
    b_tile[threadIdx.y][i] = b_row < n ? number(b, sfb, b_row, block, i, blocks) : 0.0f;
    __syncthreads();
    for (int p = 0; p < kTile; ++p) sum += a_tile[threadIdx.y][p] * b_tile[i][p];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = __float2bfloat16(sum);
}

}  // namespace

extern "C" const char* baseline_label() { return "native: tiles of 16 x 16, CUDA's conversion from FP4"; }

extern "C" void launch(const __nv_fp4x2_e2m1* a /*[m,k]*/, const __nv_fp8_e4m3* sfa,
                       const __nv_fp4x2_e2m1* b /*[n,k]*/, const __nv_fp8_e4m3* sfb,
                       __nv_bfloat16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile),
                  static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(reinterpret_cast<const uint8_t*>(a), sfa,
                                    reinterpret_cast<const uint8_t*>(b), sfb, c, m, k / kTile, n);
}
