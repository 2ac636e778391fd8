// cause: unwritten
// mistake: a block has 32 x 8 threads, but each thread stores only one of its four rows of the tile.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TILE_DIM = 32;
constexpr int BLOCK_ROWS = 8;

__global__ void transpose_coalesced(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[TILE_DIM][TILE_DIM + 1];
  int xi = blockIdx.x * TILE_DIM + threadIdx.x;
  int yi = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (xi < cols && yi + j < rows) tile[threadIdx.y + j][threadIdx.x] = x[(yi + j) * cols + xi];
  __syncthreads();
  xi = blockIdx.y * TILE_DIM + threadIdx.x;
  yi = blockIdx.x * TILE_DIM + threadIdx.y;
  for (int j = 0; j < BLOCK_ROWS; j += BLOCK_ROWS)
    if (xi < rows && yi + j < cols) y[(yi + j) * rows + xi] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((cols + TILE_DIM - 1) / TILE_DIM, (rows + TILE_DIM - 1) / TILE_DIM);
  dim3 block(TILE_DIM, BLOCK_ROWS);
  transpose_coalesced<<<grid, block, 0, stream>>>(x, y, (int)rows, (int)cols);
}
