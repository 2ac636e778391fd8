// cause: stride
// line: 13
// mistake: y is stored with cols as leading dimension; a row of y has rows elements.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void transpose_naive(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols;
       i += (int64_t)gridDim.x * blockDim.x) {
    int64_t r = i / cols;
    int64_t c = i % cols;
    y[c * cols + r] = x[i];
  }
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  transpose_naive<<<128, 256, 0, stream>>>(x, y, rows, cols);
}
