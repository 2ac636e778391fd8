// Native baseline: transpose through a padded 32 x 32 tile in shared memory, fp32: what every textbook ends with.
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kTile = 32, kRows = 8;

__global__ void tiled(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t cols) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile, column0 = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int i = threadIdx.y; i < kTile; i += kRows)
    if (row0 + i < rows && column0 + threadIdx.x < cols)
      tile[i][threadIdx.x] = x[(row0 + i) * cols + column0 + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < kTile; i += kRows)
    if (column0 + i < cols && row0 + threadIdx.x < rows)
      y[(column0 + i) * rows + row0 + threadIdx.x] = tile[threadIdx.x][i];
}

}  // namespace

extern "C" const char* baseline_label() { return "native transpose: 32 x 32 padded tile, fp32"; }

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[cols,rows]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((cols + kTile - 1) / kTile), static_cast<unsigned>((rows + kTile - 1) / kTile));
  tiled<<<grid, dim3(kTile, kRows), 0, stream>>>(x, y, rows, cols);
}
