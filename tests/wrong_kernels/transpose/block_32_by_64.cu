// cause: launch
// line: 21
// mistake: a block of 32 x 64 threads exceeds 1024 threads.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TX = 32;
constexpr int TY = 64;

__global__ void transpose_big_block(const float* x, float* y, int64_t rows, int64_t cols) {
  int64_t c = (int64_t)blockIdx.x * TX + threadIdx.x;
  int64_t r = (int64_t)blockIdx.y * TY + threadIdx.y;
  if (r >= rows || c >= cols) return;
  y[c * rows + r] = x[r * cols + c];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 grid((unsigned)((cols + TX - 1) / TX), (unsigned)((rows + TY - 1) / TY));
  transpose_big_block<<<grid, dim3(TX, TY), 0, stream>>>(x, y, rows, cols);
}
