// cause: nan
// mistake: two lanes without a column have a maximum of -inf, and merging them takes exp(-inf - -inf) = NaN.
#include <cuda_runtime.h>

#include <cstdint>

// Online softmax: each lane keeps its own maximum and sum, and the lanes are merged at the end.
__global__ void online_warp(const float* x, float* y, int64_t rows, int64_t cols) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const float* in = x + row * cols;
  float m = -INFINITY, d = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += 32) {
    const float next = fmaxf(m, in[j]);
    d = d * expf(m - next) + expf(in[j] - next);
    m = next;
  }
  for (int o = 16; o > 0; o >>= 1) {
    const float other_m = __shfl_xor_sync(0xffffffffu, m, o);
    const float other_d = __shfl_xor_sync(0xffffffffu, d, o);
    const float next = fmaxf(m, other_m);
    d = d * expf(m - next) + other_d * expf(other_m - next);
    m = next;
  }
  for (int64_t j = threadIdx.x; j < cols; j += 32) y[row * cols + j] = expf(in[j] - m) / d;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  online_warp<<<(unsigned)((rows + 7) / 8), dim3(32, 8), 0, stream>>>(x, y, rows, cols);
}
