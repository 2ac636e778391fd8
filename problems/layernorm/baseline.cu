// Native baseline: LayerNorm the way PyTorch eager runs it: a block a sample gets the statistics, then it
// normalises. For rows as long as these it is a weak reference, and it is the one that the published ratio
// was measured against.
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

/// The sum of `v` over the block, in every thread. `partial` must not be in use by an earlier sum.
__device__ float block_sum(float v, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[threadIdx.x % kWarps];
  for (int offset = kWarps / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__device__ float total(float4 v) { return (v.x + v.y) + (v.z + v.w); }
__device__ float4 less(float4 v, float mean) {
  return make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
}
__device__ float squares_of(float4 d) { return (d.x * d.x + d.y * d.y) + (d.z * d.z + d.w * d.w); }

/// `kVector` needs length % 4 == 0, so that every sample starts on 16 bytes.
template <bool kVector>
__global__ void __launch_bounds__(kThreads)
    layer_norm(const float* __restrict__ x, const float* __restrict__ gamma, const float* __restrict__ beta,
               float* __restrict__ y, float eps, int64_t length) {
  __shared__ float partial[2][kWarps];
  x += blockIdx.x * length, y += blockIdx.x * length;
  const float4* x4 = reinterpret_cast<const float4*>(x);
  const int64_t vectors = kVector ? length / 4 : 0;  // the scalar loops start behind these
  float sum = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) sum += total(x4[i]);
  for (int64_t i = vectors * 4 + threadIdx.x; i < length; i += kThreads) sum += x[i];
  const float mean = block_sum(sum, partial[0]) / static_cast<float>(length);
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) squares += squares_of(less(x4[i], mean));
  for (int64_t i = vectors * 4 + threadIdx.x; i < length; i += kThreads)
    squares += (x[i] - mean) * (x[i] - mean);
  const float inverse = rsqrtf(block_sum(squares, partial[1]) / static_cast<float>(length) + eps);
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    const float4 d = less(x4[i], mean);
    const float4 g = reinterpret_cast<const float4*>(gamma)[i], b = reinterpret_cast<const float4*>(beta)[i];
    reinterpret_cast<float4*>(y)[i] = make_float4(d.x * inverse * g.x + b.x, d.y * inverse * g.y + b.y,
                                                  d.z * inverse * g.z + b.z, d.w * inverse * g.w + b.w);
  }
  for (int64_t i = vectors * 4 + threadIdx.x; i < length; i += kThreads)
    y[i] = (x[i] - mean) * inverse * gamma[i] + beta[i];
}

}  // namespace

extern "C" const char* baseline_label() { return "native eager: LayerNorm, one block a sample, fp32"; }

extern "C" void launch(const float* x /*[n,c,h,w]*/, const float* gamma /*[c,h,w]*/,
                       const float* beta /*[c,h,w]*/, float* y /*[n,c,h,w]*/, float eps, int64_t n, int64_t c,
                       int64_t h, int64_t w, void* /*workspace*/, cudaStream_t stream) {
  const int64_t length = c * h * w;
  if (length % 4 == 0)
    layer_norm<true><<<static_cast<unsigned>(n), kThreads, 0, stream>>>(x, gamma, beta, y, eps, length);
  else
    layer_norm<false><<<static_cast<unsigned>(n), kThreads, 0, stream>>>(x, gamma, beta, y, eps, length);
}
