// cause: out_of_bounds
// line: 18
// mistake: the load is guarded, but the store is not.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int N = 32;

__global__ void transpose_shared(const float* x, float* y, int64_t rows, int64_t cols) {
  __shared__ float tile[N][N + 1];
  int64_t r = (int64_t)blockIdx.y * N + threadIdx.y;
  int64_t c = (int64_t)blockIdx.x * N + threadIdx.x;
  tile[threadIdx.y][threadIdx.x] = (r < rows && c < cols) ? x[r * cols + c] : 0.0f;
  __syncthreads();
  r = (int64_t)blockIdx.x * N + threadIdx.y;
  c = (int64_t)blockIdx.y * N + threadIdx.x;
  y[r * rows + c] = tile[threadIdx.x][threadIdx.y];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  transpose_shared<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(N, N), 0, stream>>>(x, y, rows, cols);
}
