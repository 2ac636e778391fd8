// cause: unwritten
// mistake: the number of tiles across is cols / 16 rounded down.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TILE = 16;

__global__ void transpose16(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t cols) {
  __shared__ float t[TILE][TILE + 1];
  const int64_t bx = (int64_t)blockIdx.x * TILE, by = (int64_t)blockIdx.y * TILE;
  if (by + threadIdx.y < rows && bx + threadIdx.x < cols)
    t[threadIdx.y][threadIdx.x] = x[(by + threadIdx.y) * cols + bx + threadIdx.x];
  __syncthreads();
  if (bx + threadIdx.y < cols && by + threadIdx.x < rows)
    y[(bx + threadIdx.y) * rows + by + threadIdx.x] = t[threadIdx.x][threadIdx.y];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  unsigned gx = cols < TILE ? 1 : cols / TILE;
  unsigned gy = (rows + TILE - 1) / TILE;
  transpose16<<<dim3(gx, gy), dim3(TILE, TILE), 0, stream>>>(x, y, rows, cols);
}
