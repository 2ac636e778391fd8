// cause: precision
// mistake: the shared tile holds half values to save memory, which rounds every element.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TILE = 32;
using tile_t = __half;

__global__ void transpose_small_tile(const float* x, float* y, int64_t rows, int64_t cols) {
  __shared__ tile_t tile[TILE][TILE + 2];
  const int64_t c0 = (int64_t)blockIdx.x * TILE, r0 = (int64_t)blockIdx.y * TILE;
  for (int i = threadIdx.y; i < TILE; i += 8)
    if (r0 + i < rows && c0 + threadIdx.x < cols)
      tile[i][threadIdx.x] = (tile_t)x[(r0 + i) * cols + c0 + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < TILE; i += 8)
    if (c0 + i < cols && r0 + threadIdx.x < rows)
      y[(c0 + i) * rows + r0 + threadIdx.x] = (float)tile[threadIdx.x][i];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transpose_small_tile<<<grid, dim3(32, 8), 0, stream>>>(x, y, rows, cols);
}
