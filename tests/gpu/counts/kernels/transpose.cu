// A 256 x 256 matrix transposed: with global memory only, with a tile that has bank conflicts, with a padded
// tile.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kSide = 256, kTile = 32, kRows = 8;

// Rows in (4 sectors), columns out (32 sectors).
__global__ void transpose_naive(const float* x, float* y) {
  const int column = blockIdx.x * kTile + threadIdx.x;
#pragma unroll 1
  for (int r = threadIdx.y; r < kTile; r += kRows) {
    const int row = blockIdx.y * kTile + r;
    y[column * kSide + row] = x[row * kSide + column];
  }
}

// Columns are read from shared memory: 32 wavefronts with a pitch of 32 words, 1 with 33.
template <int kPitch>
__device__ void transpose_through_tile(const float* x, float* y, float (&tile)[kTile][kPitch]) {
#pragma unroll 1
  for (int r = threadIdx.y; r < kTile; r += kRows)
    tile[r][threadIdx.x] = x[(blockIdx.y * kTile + r) * kSide + blockIdx.x * kTile + threadIdx.x];
  __syncthreads();
#pragma unroll 1
  for (int r = threadIdx.y; r < kTile; r += kRows)
    y[(blockIdx.x * kTile + r) * kSide + blockIdx.y * kTile + threadIdx.x] = tile[threadIdx.x][r];
}
__global__ void transpose_tiled(const float* x, float* y) {
  __shared__ float tile[kTile][kTile];
  transpose_through_tile(x, y, tile);
}
__global__ void transpose_padded(const float* x, float* y) {
  __shared__ float tile[kTile][kTile + 1];
  transpose_through_tile(x, y, tile);
}

extern "C" void launch(const float* x, float* y, int64_t /*n*/, void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(kSide / kTile, kSide / kTile), block(kTile, kRows);
  transpose_naive<<<grid, block, 0, stream>>>(x, y);
  transpose_tiled<<<grid, block, 0, stream>>>(x, y);
  transpose_padded<<<grid, block, 0, stream>>>(x, y);
}
