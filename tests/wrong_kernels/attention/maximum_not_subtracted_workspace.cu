// cause: missing_maximum
// mistake: the scores in the workspace go through exp without their maximum being subtracted.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

// Three kernels: scores, softmax, product with the values.
__global__ void scores_kernel(const __half* q, const __half* k, float* s, int64_t h, int64_t n, int64_t d) {
  const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t i = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
  const int64_t head = blockIdx.z;
  if (i >= n || j >= n) return;
  float acc = 0.0f;
  for (int64_t c = 0; c < d; ++c)
    acc += __half2float(q[(head * n + i) * d + c]) * __half2float(k[(head * n + j) * d + c]);
  s[(head * n + i) * n + j] = acc / sqrtf((float)d);
}

__global__ void softmax_kernel(float* s, int64_t rows, int64_t n) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* r = s + row * n;
  float sum = 0.0f;
  for (int64_t j = 0; j < n; ++j) {
    r[j] = expf(r[j]);
    sum += r[j];
  }
  for (int64_t j = 0; j < n; ++j) r[j] /= sum;
}

__global__ void values_kernel(const float* s, const __half* v, __half* o, int64_t n, int64_t d) {
  const int64_t row = blockIdx.x;
  const int64_t head = row / n;
  for (int64_t c = threadIdx.x; c < d; c += blockDim.x) {
    float acc = 0.0f;
    for (int64_t j = 0; j < n; ++j) acc += s[row * n + j] * __half2float(v[(head * n + j) * d + c]);
    o[row * d + c] = __float2half(acc);
  }
}

extern "C" size_t workspace_bytes(int64_t h, int64_t n, int64_t d) { return h * n * n * sizeof(float); }

extern "C" void launch(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n,
                       int64_t d, void* workspace, cudaStream_t stream) {
  float* s = (float*)workspace;
  dim3 grid((unsigned)((n + 15) / 16), (unsigned)((n + 15) / 16), (unsigned)h);
  scores_kernel<<<grid, dim3(16, 16), 0, stream>>>(q, k, s, h, n, d);
  softmax_kernel<<<(unsigned)((h * n + 63) / 64), 64, 0, stream>>>(s, h * n, n);
  values_kernel<<<(unsigned)(h * n), 64, 0, stream>>>(s, v, o, n, d);
}
