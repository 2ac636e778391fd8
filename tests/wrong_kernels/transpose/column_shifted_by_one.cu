// cause: off_by_one
// line: 14
// mistake: the column of x is one too far, since columns are counted from one.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void transpose_gather(const float* x, float* y, int64_t rows, int64_t cols) {
  // One thread per element of y, so that the stores are coalesced.
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * cols) return;
  const int64_t c = i / rows + 1;
  const int64_t r = i % rows;
  y[i] = x[r * cols + c];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  transpose_gather<<<(unsigned)((rows * cols + 255) / 256), 256, 0, stream>>>(x, y, rows, cols);
}
