// Rung 1: one block a sample, three passes: mean, variance, result.
//
// Changed     nothing yet: the definition. The block reads its sample once for the mean, once for the
//             squared deviations, once for the result.
// Why         this is how a row-wise LayerNorm is written, and with thousands of short rows it is good.
//             Frameworks use the same kernel for every shape.
// Prediction  16 samples are 16 blocks, so 116 of 132 multiprocessors rest. One multiprocessor moves
//             about 25 GB/s for each KB in flight; at 60 GB/s a block, 16 x 17 MB x 4 passes take more
//             than 1 ms.
// Came        2.14 ms on an H100, 267 GB/s. 64 % of the native baseline.
//
// Shapes      x, y [n, c, h, w]; gamma, beta [c, h, w]; any sizes.
// Launch      <<<n, 1024>>>.
// Resources   about 32 registers; 256 bytes of shared memory.
// Cost        8 n c h w FLOPs; x is read three times, gamma and beta n times.
// Divides     no divisibility is required.
// Source      the definition; two passes for the statistics, so nothing cancels.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 1024;

/// The sum of v over the block, in every thread. `partial` [32] must not be in use by an earlier sum.
__device__ float block_sum(float v, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[threadIdx.x % 32];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__global__ void __launch_bounds__(kThreads)
    layernorm(const float* x, const float* gamma, const float* beta, float* y, float eps, int64_t length) {
  __shared__ float partial[2][32];
  const int64_t start = blockIdx.x * length;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < length; i += kThreads) sum += x[start + i];
  const float mean = block_sum(sum, partial[0]) / static_cast<float>(length);

  float squares = 0;
  for (int64_t i = threadIdx.x; i < length; i += kThreads)
    squares += (x[start + i] - mean) * (x[start + i] - mean);
  const float inverse = rsqrtf(block_sum(squares, partial[1]) / static_cast<float>(length) + eps);

  for (int64_t i = threadIdx.x; i < length; i += kThreads)
    y[start + i] = (x[start + i] - mean) * inverse * gamma[i] + beta[i];
}

extern "C" void launch(const float* x /*[n,c,h,w]*/, const float* gamma /*[c,h,w]*/,
                       const float* beta /*[c,h,w]*/, float* y /*[n,c,h,w]*/, float eps, int64_t n, int64_t c,
                       int64_t h, int64_t w, void* /*workspace*/, cudaStream_t stream) {
  layernorm<<<static_cast<unsigned>(n), kThreads, 0, stream>>>(x, gamma, beta, y, eps, c * h * w);
}
