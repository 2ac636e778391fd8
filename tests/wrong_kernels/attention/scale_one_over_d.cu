// cause: constant
// mistake: the scores are divided by d instead of sqrt(d).
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 128;

__device__ float reduce(float v, float* s, bool maximum) {
  s[threadIdx.x] = v;
  __syncthreads();
  for (int w = kThreads / 2; w > 0; w /= 2) {
    if (threadIdx.x < w)
      s[threadIdx.x] =
          maximum ? fmaxf(s[threadIdx.x], s[threadIdx.x + w]) : s[threadIdx.x] + s[threadIdx.x + w];
    __syncthreads();
  }
  const float r = s[0];
  __syncthreads();
  return r;
}

// One block per query: its scores stay in shared memory.
__global__ void attention_row(const __half* q, const __half* k, const __half* v, __half* o, int n, int d) {
  extern __shared__ float scores[];
  __shared__ float red[kThreads];
  const int64_t head = (int64_t)blockIdx.y * n * d;
  const __half* qi = q + head + (int64_t)blockIdx.x * d;
  const float scale = 1.0f / (float)d;

  float m = -INFINITY;
  for (int j = threadIdx.x; j < n; j += kThreads) {
    float s = 0.0f;
    for (int c = 0; c < d; ++c) s += __half2float(qi[c]) * __half2float(k[head + (int64_t)j * d + c]);
    scores[j] = s * scale;
    m = fmaxf(m, scores[j]);
  }
  m = reduce(m, red, true);

  float sum = 0.0f;
  for (int j = threadIdx.x; j < n; j += kThreads) {
    scores[j] = expf(scores[j] - m);
    sum += scores[j];
  }
  sum = reduce(sum, red, false);

  for (int c = threadIdx.x; c < d; c += kThreads) {
    float acc = 0.0f;
    for (int j = 0; j < n; ++j) acc += scores[j] * __half2float(v[head + (int64_t)j * d + c]);
    o[head + (int64_t)blockIdx.x * d + c] = __float2half(acc / sum);
  }
}

extern "C" void launch(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n,
                       int64_t d, void* workspace, cudaStream_t stream) {
  dim3 grid((unsigned)n, (unsigned)h);
  attention_row<<<grid, kThreads, n * sizeof(float), stream>>>(q, k, v, o, (int)n, (int)d);
}
