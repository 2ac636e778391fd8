// cause: transposed
// mistake: the tile goes to the transposed place, but its elements are read in the order they were stored.
#include <cuda_runtime.h>

#include <cstdint>

#define TILE 32
#define ROWS 4

__global__ void transpose_blocked(const float* in, float* out, int64_t rows, int64_t cols) {
  __shared__ float tile[TILE][TILE + 1];
  for (int i = threadIdx.y; i < TILE; i += ROWS) {
    int64_t r = (int64_t)blockIdx.y * TILE + i, c = (int64_t)blockIdx.x * TILE + threadIdx.x;
    tile[i][threadIdx.x] = r < rows && c < cols ? in[r * cols + c] : 0.0f;
  }
  __syncthreads();
  for (int i = threadIdx.y; i < TILE; i += ROWS) {
    int64_t r = (int64_t)blockIdx.x * TILE + i, c = (int64_t)blockIdx.y * TILE + threadIdx.x;
    if (r < cols && c < rows) out[r * rows + c] = tile[i][threadIdx.x];
  }
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((unsigned)((cols + TILE - 1) / TILE), (unsigned)((rows + TILE - 1) / TILE));
  transpose_blocked<<<grid, dim3(TILE, ROWS), 0, stream>>>(x, y, rows, cols);
}
