// cause: off_by_one
// mistake: the guard excludes the last row of x.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void transpose_rows(const float* x, float* y, int64_t rows, int64_t cols) {
  // One block per row, its threads stride over the columns.
  const int64_t r = blockIdx.x;
  if (r >= rows - 1) return;
  for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) y[c * rows + r] = x[r * cols + c];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  transpose_rows<<<(unsigned)rows, 128, 0, stream>>>(x, y, rows, cols);
}
