// cause: race
// line: 17
// mistake: a block walks over several tiles, and refills the shared tile while other threads still read it.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int T = 16;

__global__ void transpose_walk(const float* x, float* y, int64_t rows, int64_t cols) {
  __shared__ float tile[T][T + 1];
  const int64_t tiles_down = (rows + T - 1) / T;
  const int64_t c0 = (int64_t)blockIdx.x * T;
  for (int64_t t = 0; t < tiles_down; ++t) {
    const int64_t r0 = t * T;
    if (r0 + threadIdx.y < rows && c0 + threadIdx.x < cols)
      tile[threadIdx.y][threadIdx.x] = x[(r0 + threadIdx.y) * cols + c0 + threadIdx.x];
    __syncthreads();
    if (c0 + threadIdx.y < cols && r0 + threadIdx.x < rows)
      y[(c0 + threadIdx.y) * rows + r0 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
  }
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  transpose_walk<<<(unsigned)((cols + T - 1) / T), dim3(T, T), 0, stream>>>(x, y, rows, cols);
}
