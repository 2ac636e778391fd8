// Rung 1: a block takes a row and reads it twice.
//
// Changed     the first of the ladder: 256 threads add up the squares of a row, and read it again to scale
//             it.
// Why         the plainest kernel that has one row in one block; every later rung changes where the row
//             waits between the sum and the scaling.
// Prediction  three trips over the matrix instead of two, but the second read mostly hits the caches. What
//             costs more: a load asks for two bytes, so a warp asks for 64 at a time. Half of a copy.
// Came        107 us on an H100, 2502 GB/s. 83 % of the native baseline.
//
// Shapes      x, y [rows, cols], w [cols], bf16, row-major; any rows, any cols.
// Launch      <<<rows, 256>>>.
// Resources   about 30 registers; 32 bytes of shared memory; no workspace.
// Cost        4 * rows * cols FLOPs; 6 * rows * cols bytes are read or written, 4 have to be.
// Divides     no divisibility is required.
// Source      B. Zhang and R. Sennrich, "Root Mean Square Layer Normalization", 2019.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256, kWarps = kThreads / 32;

/// The sum of `v` over the block, in every thread.
__device__ float block_sum(float v) {
  __shared__ float partial[kWarps];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += partial[warp];
  return sum;
}

__global__ void rmsnorm(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
                        __nv_bfloat16* __restrict__ y, float eps, int64_t cols) {
  const int64_t start = blockIdx.x * cols;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const float v = __bfloat162float(x[start + i]);
    squares += v * v;
  }
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(cols) + eps);
  for (int64_t i = threadIdx.x; i < cols; i += kThreads)
    y[start + i] = __float2bfloat16(__bfloat162float(x[start + i]) * scale * __bfloat162float(w[i]));
}

extern "C" void launch(const __nv_bfloat16* x /*[rows,cols]*/, const __nv_bfloat16* w /*[cols]*/,
                       __nv_bfloat16* y /*[rows,cols]*/, float eps, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  rmsnorm<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, w, y, eps, cols);
}
