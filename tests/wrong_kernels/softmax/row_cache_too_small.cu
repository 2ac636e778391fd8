// cause: out_of_bounds
// line: 20
// mistake: the row is cached in a shared array of 4096 floats, but a row may be longer.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kMaxCols = 4096;

// The row stays in shared memory between the passes: one read, one write.
__global__ void softmax_cached(const float* x, float* y, int64_t cols) {
  __shared__ float row[kMaxCols];
  __shared__ float part[8];
  const int tid = threadIdx.x;
  const int64_t base = blockIdx.x * cols;

  float m = -INFINITY;
  for (int64_t j = tid; j < cols; j += kThreads) {
    row[j] = x[base + j];
    m = fmaxf(m, row[j]);
  }
  for (int o = 16; o > 0; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
  if (tid % 32 == 0) part[tid / 32] = m;
  __syncthreads();
  for (int i = 0; i < 8; ++i) m = fmaxf(m, part[i]);
  __syncthreads();

  float s = 0.0f;
  for (int64_t j = tid; j < cols; j += kThreads) {
    row[j] = expf(row[j] - m);
    s += row[j];
  }
  for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
  if (tid % 32 == 0) part[tid / 32] = s;
  __syncthreads();
  s = 0.0f;
  for (int i = 0; i < 8; ++i) s += part[i];
  for (int64_t j = tid; j < cols; j += kThreads) y[base + j] = row[j] / s;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_cached<<<(unsigned)rows, kThreads, 0, stream>>>(x, y, cols);
}
