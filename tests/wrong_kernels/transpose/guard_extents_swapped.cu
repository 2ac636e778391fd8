// cause: swapped
// line: 12
// mistake: the guard compares the row with cols and the column with rows.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void transpose_simple(const float* x, float* y, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= cols || col >= rows) return;
  y[(size_t)col * rows + row] = x[(size_t)row * cols + col];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 block(16, 16);
  dim3 grid((unsigned)(cols + 15) / 16, (unsigned)(rows + 15) / 16);
  transpose_simple<<<grid, block, 0, stream>>>(x, y, (int)rows, (int)cols);
}
