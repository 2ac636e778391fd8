// C = A * B, 128 x 128 x 128: naive, coalesced, tiled, and a tile with 8 x 8 results per thread. A is at x, B
// directly after it. Loops over k are not unrolled: otherwise nvcc would read four neighbouring words of a
// row in one access.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kSize = 128, kTile = 32;

// Lanes go down the rows of A and C: 32 sectors; all read one word of B.
__global__ void sgemm_naive(const float* a, const float* b, float* c) {
  const int row = blockIdx.x * kTile + threadIdx.x, column = blockIdx.y * kTile + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < kSize; ++k) sum += a[row * kSize + k] * b[k * kSize + column];
  c[row * kSize + column] = sum;
}

__global__ void sgemm_coalesced(const float* a, const float* b, float* c) {
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < kSize; ++k) sum += a[row * kSize + k] * b[k * kSize + column];
  c[row * kSize + column] = sum;
}

__global__ void sgemm_tiled(const float* a, const float* b, float* c) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k0 = 0; k0 < kSize; k0 += kTile) {
    a_tile[threadIdx.y][threadIdx.x] = a[row * kSize + k0 + threadIdx.x];
    b_tile[threadIdx.y][threadIdx.x] = b[(k0 + threadIdx.y) * kSize + column];
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < kTile; ++k) sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    __syncthreads();
  }
  c[row * kSize + column] = sum;
}

// 64 threads, a tile of 64 x 64 of C, 8 deep. A is stored transposed, so that both fragments are float4s of a
// row.
constexpr int kWide = 64, kDeep = 8;
__global__ void sgemm_register_tile(const float* a, const float* b, float* c) {
  __shared__ __align__(16) float a_tile[kDeep][kWide], b_tile[kDeep][kWide];
  const int t = threadIdx.x, ty = t / 8, tx = t % 8;
  float sum[8][8] = {};
#pragma unroll 1
  for (int k0 = 0; k0 < kSize; k0 += kDeep) {
#pragma unroll 1
    for (int k = 0; k < kDeep; ++k) {
      a_tile[k][t] = a[(blockIdx.y * kWide + t) * kSize + k0 + k];
      b_tile[k][t] = b[(k0 + k) * kSize + blockIdx.x * kWide + t];
    }
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < kDeep; ++k) {
      float a_of[8], b_of[8];
      *reinterpret_cast<float4*>(a_of) = *reinterpret_cast<const float4*>(&a_tile[k][ty * 4]);
      *reinterpret_cast<float4*>(a_of + 4) = *reinterpret_cast<const float4*>(&a_tile[k][ty * 4 + 32]);
      *reinterpret_cast<float4*>(b_of) = *reinterpret_cast<const float4*>(&b_tile[k][tx * 4]);
      *reinterpret_cast<float4*>(b_of + 4) = *reinterpret_cast<const float4*>(&b_tile[k][tx * 4 + 32]);
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += a_of[i] * b_of[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float* row = c + (blockIdx.y * kWide + ty * 4 + i % 4 + i / 4 * 32) * kSize + blockIdx.x * kWide + tx * 4;
    *reinterpret_cast<float4*>(row) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    *reinterpret_cast<float4*>(row + 32) = make_float4(sum[i][4], sum[i][5], sum[i][6], sum[i][7]);
  }
}

extern "C" void launch(const float* x, float* y, int64_t /*n*/, void* /*workspace*/, cudaStream_t stream) {
  const float *a = x, *b = x + kSize * kSize;
  const dim3 grid(kSize / kTile, kSize / kTile), block(kTile, kTile);
  sgemm_naive<<<grid, block, 0, stream>>>(a, b, y);
  sgemm_coalesced<<<grid, block, 0, stream>>>(a, b, y);
  sgemm_tiled<<<grid, block, 0, stream>>>(a, b, y);
  sgemm_register_tile<<<dim3(kSize / kWide, kSize / kWide), 64, 0, stream>>>(a, b, y);
}
