// cause: misaligned
// line: 31
// mistake: rows are read as float4 whatever cols is, so most rows start at an unaligned address.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 128;

__device__ float reduce(float v, bool is_max) {
  __shared__ float part[kThreads / 32];
  for (int o = 16; o; o >>= 1) {
    float other = __shfl_xor_sync(0xffffffff, v, o);
    v = is_max ? fmaxf(v, other) : v + other;
  }
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[0];
  for (int i = 1; i < kThreads / 32; ++i) v = is_max ? fmaxf(v, part[i]) : v + part[i];
  __syncthreads();
  return v;
}

__global__ void softmax_vec4(const float* x, float* y, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  const int64_t vecs = cols / 4;

  float m = -INFINITY;
  for (int64_t i = threadIdx.x; i < vecs; i += kThreads) {
    float4 v = reinterpret_cast<const float4*>(in)[i];
    m = fmaxf(fmaxf(fmaxf(m, v.x), fmaxf(v.y, v.z)), v.w);
  }
  for (int64_t j = vecs * 4 + threadIdx.x; j < cols; j += kThreads) m = fmaxf(m, in[j]);
  m = reduce(m, true);

  float s = 0.0f;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) s += expf(in[j] - m);
  s = reduce(s, false);
  const float inv = 1.0f / s;
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) out[j] = expf(in[j] - m) * inv;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  softmax_vec4<<<(unsigned)rows, kThreads, 0, stream>>>(x, y, cols);
}
