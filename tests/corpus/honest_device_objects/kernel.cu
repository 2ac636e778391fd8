// Honest: Softmax with virtual functions, new and delete on the device, recursion, and arrays indexed at run time.
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

constexpr int kThreads = 64;

struct Combine {
  __device__ virtual float operator()(float a, float b) const = 0;
  __device__ virtual ~Combine() {}
};
struct Maximum : Combine {
  __device__ float operator()(float a, float b) const override { return fmaxf(a, b); }
};
struct Sum : Combine {
  __device__ float operator()(float a, float b) const override { return a + b; }
};

/// A pairwise tree by recursion.
__device__ __noinline__ float tree(const float* values, int count, const Combine& combine) {
  if (count == 1) return values[0];
  return combine(tree(values, count / 2, combine), tree(values + count / 2, count - count / 2, combine));
}

__device__ float over_block(float value, const Combine& combine) {
  __shared__ float part[kThreads];
  __shared__ float all;
  __syncthreads();
  part[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x == 0) all = tree(part, kThreads, combine);
  __syncthreads();
  return all;
}

__global__ void softmax(const float* x, float* y, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  __shared__ const Combine* steps[2];  // of one thread: the heap is small
  if (threadIdx.x == 0) {
    steps[0] = new Maximum;
    steps[1] = new Sum;
  }
  __syncthreads();
  float results[2] = {-FLT_MAX, 0.0f};
  for (int which = 0; which < 2; ++which) {
    for (int64_t i = threadIdx.x; i < cols; i += kThreads)
      results[which] = (*steps[which])(results[which], which == 0 ? in[i] : expf(in[i] - results[0]));
    results[which] = over_block(results[which], *steps[which]);
  }
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) out[i] = expf(in[i] - results[0]) / results[1];
  __syncthreads();
  if (threadIdx.x != 0) return;
  delete steps[0];
  delete steps[1];
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  softmax<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, y, cols);
}
