// cause: race
// line: 17
// mistake: the tile is read without a barrier after it was filled by other threads.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 32;

__global__ void transpose_tile(const float* x, float* y, int64_t rows, int64_t cols) {
  __shared__ float tile[kTile][kTile + 1];
  int64_t c = (int64_t)blockIdx.x * kTile + threadIdx.x;
  int64_t r = (int64_t)blockIdx.y * kTile + threadIdx.y;
  if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
  int64_t out_c = (int64_t)blockIdx.y * kTile + threadIdx.x;
  int64_t out_r = (int64_t)blockIdx.x * kTile + threadIdx.y;
  if (out_r < cols && out_c < rows) y[out_r * rows + out_c] = tile[threadIdx.x][threadIdx.y];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((cols + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  transpose_tile<<<grid, dim3(kTile, kTile), 0, stream>>>(x, y, rows, cols);
}
