// cause: partial_reduction
// mistake: the sums of the warps are not added up: every thread takes the sum of warp 0.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__global__ void softmax_rows(const float* x, float* y, int64_t cols) {
  __shared__ float warp_max[kWarps];
  __shared__ float warp_sum[kWarps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;

  float m = -INFINITY;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) m = fmaxf(m, in[j]);
  for (int o = 16; o > 0; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (lane == 0) warp_max[warp] = m;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) m = fmaxf(m, warp_max[w]);

  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) sum += expf(in[j] - m);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (lane == 0) warp_sum[warp] = sum;
  __syncthreads();
  sum = warp_sum[0];

  for (int64_t j = threadIdx.x; j < cols; j += kThreads) out[j] = expf(in[j] - m) / sum;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_rows<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, y, cols);
}
