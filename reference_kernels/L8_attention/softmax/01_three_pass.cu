// Rung 1: softmax of each row in three passes over global memory, straight from the definition.
//
// Changed     nothing yet: this is the textbook kernel. Pass 1 finds the row's maximum, pass 2 sums exp(x -
//             maximum), pass 3 writes exp(x - maximum) / sum.
// Why         the maximum keeps exp() from overflowing; it has to be known before the first exponential.
// Prediction  4 floats move an element (three reads, one write) where 2 would do: at most half the speed of a
//             copy, unless the row still lies in a cache when the next pass comes.
//
// Shapes      x, y [rows, cols], row-major; any rows, any cols.
// Launch      <<<rows, 256>>>; neighbouring threads read neighbouring floats.
// Resources   32 registers; 2 KB of shared memory for the two tree reductions.
// Cost        4 * rows * cols FLOPs; 16 * rows * cols bytes (8 would do).
// Divides     no divisibility is required.
// Source      the definition; tree reduction in shared memory as in M. Harris, "Optimizing Parallel Reduction
//             in CUDA".
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

constexpr int kThreads = 256;

/// Halves the number of partial results until one is left; every thread gets it.
template <class Combine>
__device__ float block_reduce(float v, Combine combine) {
  __shared__ float partial[kThreads];
  partial[threadIdx.x] = v;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) partial[threadIdx.x] = combine(partial[threadIdx.x], partial[threadIdx.x + half]);
    __syncthreads();
  }
  return partial[0];
}

struct Maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

__global__ void softmax(const float* x, float* y, int64_t cols) {
  const int64_t row = blockIdx.x * cols;

  float maximum = -FLT_MAX;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) maximum = fmaxf(maximum, x[row + c]);
  maximum = block_reduce(maximum, Maximum());

  float sum = 0;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) sum += expf(x[row + c] - maximum);
  sum = block_reduce(sum, Sum());

  for (int64_t c = threadIdx.x; c < cols; c += kThreads) y[row + c] = expf(x[row + c] - maximum) / sum;
}

extern "C" void launch(const float* x /*[rows,cols]*/, float* y /*[rows,cols]*/, int64_t rows, int64_t cols,
                       void* /*workspace*/, cudaStream_t stream) {
  softmax<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, y, cols);
}
