// cause: transposed
// mistake: the element is stored where it was read: the kernel copies.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void transpose(const float* x, float* y, int64_t rows, int64_t cols) {
  int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols) y[r * cols + c] = x[r * cols + c];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 block(32, 8);
  dim3 grid((cols + 31) / 32, (rows + 7) / 8);
  transpose<<<grid, block, 0, stream>>>(x, y, rows, cols);
}
