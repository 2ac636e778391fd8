// cause: missing_maximum
// mistake: each warp sums exp(x) without the maximum of the row: a large input gives inf/inf.
#include <cuda_runtime.h>

#include <cstdint>

// One warp per row, eight rows per block.
__global__ void softmax_warp(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t cols) {
  const int lane = threadIdx.x;
  const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const float* in = x + row * cols;
  float* out = y + row * cols;
  float sum = 0.0f;
  for (int64_t j = lane; j < cols; j += 32) {
    float e = expf(in[j]);
    out[j] = e;
    sum += e;
  }
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
  const float scale = 1.0f / sum;
  for (int64_t j = lane; j < cols; j += 32) out[j] *= scale;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  dim3 block(32, 8);
  dim3 grid((unsigned)((rows + 7) / 8));
  softmax_warp<<<grid, block, 0, stream>>>(x, y, rows, cols);
}
