// cause: race
// line: 26
// mistake: the tree reduction has no barrier between its steps.
#include <cuda_runtime.h>

#include <cstdint>

#define BLOCK 128

__device__ float block_max(float v, float* s) {
  s[threadIdx.x] = v;
  __syncthreads();
  for (int k = BLOCK / 2; k > 0; k >>= 1) {
    if (threadIdx.x < k) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + k]);
    __syncthreads();
  }
  float r = s[0];
  __syncthreads();
  return r;
}

__device__ float block_sum(float v, float* s) {
  s[threadIdx.x] = v;
  __syncthreads();
  for (int k = BLOCK / 2; k > 0; k >>= 1) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
  }
  __syncthreads();
  float r = s[0];
  __syncthreads();
  return r;
}

__global__ void softmax(const float* x, float* y, int64_t cols) {
  __shared__ float s[BLOCK];
  const float* row = x + blockIdx.x * cols;
  float m = -1e38f;
  for (int64_t c = threadIdx.x; c < cols; c += BLOCK) m = fmaxf(m, row[c]);
  m = block_max(m, s);
  float total = 0;
  for (int64_t c = threadIdx.x; c < cols; c += BLOCK) total += expf(row[c] - m);
  total = block_sum(total, s);
  for (int64_t c = threadIdx.x; c < cols; c += BLOCK) y[blockIdx.x * cols + c] = expf(row[c] - m) / total;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax<<<(int)rows, BLOCK, 0, stream>>>(x, y, cols);
}
