// cause: stride
// line: 12
// mistake: the offset of a row of x is row * rows instead of row * cols.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void softmax_kernel(const float* x, float* y, int64_t rows, int64_t cols) {
  int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float m = -INFINITY, sum = 0.0f;
    const float* in = x + row * rows;
    for (int64_t i = 0; i < cols; i++) m = max(m, in[i]);
    for (int64_t i = 0; i < cols; i++) sum += expf(in[i] - m);
    for (int64_t i = 0; i < cols; i++) y[row * cols + i] = expf(in[i] - m) / sum;
  }
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_kernel<<<(unsigned)((rows + 255) / 256), 256, 0, stream>>>(x, y, rows, cols);
}
