// cause: logic
// mistake: the columns of the tile are swizzled when the tile is read, but not when it is filled.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TILE = 16;

__global__ void transpose_swizzled(const float* x, float* y, int64_t rows, int64_t cols) {
  __shared__ float tile[TILE][TILE];
  const int64_t c0 = (int64_t)blockIdx.x * TILE, r0 = (int64_t)blockIdx.y * TILE;
  const int tx = threadIdx.x, ty = threadIdx.y;
  tile[ty][tx] = r0 + ty < rows && c0 + tx < cols ? x[(r0 + ty) * cols + c0 + tx] : 0.0f;
  __syncthreads();
  if (c0 + ty < cols && r0 + tx < rows) y[(c0 + ty) * rows + r0 + tx] = tile[tx][ty ^ tx];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transpose_swizzled<<<grid, dim3(TILE, TILE), 0, stream>>>(x, y, rows, cols);
}
