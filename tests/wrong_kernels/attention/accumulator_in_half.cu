// cause: precision
// mistake: the accumulator of the result is kept in half.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kQueries = 32;
constexpr int kKeys = 16;
constexpr int kMaxD = 128;

// Online softmax: one thread per query, tiles of keys and values in shared memory.
__global__ void flash(const __half* q, const __half* k, const __half* v, __half* o, int n, int d) {
  __shared__ __half ks[kKeys * kMaxD];
  __shared__ __half vs[kKeys * kMaxD];
  const int64_t head = (int64_t)blockIdx.y * n * d;
  const int row = blockIdx.x * kQueries + threadIdx.x;
  const float scale = rsqrtf((float)d);

  float qr[kMaxD];
  __half acc[kMaxD];
  for (int c = 0; c < d; ++c) {
    qr[c] = row < n ? __half2float(q[head + (int64_t)row * d + c]) : 0.0f;
    acc[c] = 0.0f;
  }
  float m = -INFINITY;
  float l = 0.0f;

  const int tiles = (n + kKeys - 1) / kKeys;
  for (int t = 0; t < tiles; ++t) {
    const int keys = min(kKeys, n - t * kKeys);
    for (int i = threadIdx.x; i < keys * d; i += kQueries) {
      ks[i] = k[head + (int64_t)t * kKeys * d + i];
      vs[i] = v[head + (int64_t)t * kKeys * d + i];
    }
    __syncthreads();

    for (int j = 0; j < keys; ++j) {
      float s = 0.0f;
      for (int c = 0; c < d; ++c) s += qr[c] * __half2float(ks[j * d + c]);
      s *= scale;
      const float m_new = fmaxf(m, s);
      const float alpha = expf(m - m_new);
      const float p = expf(s - m_new);
      l = l * alpha + p;
      for (int c = 0; c < d; ++c)
        acc[c] = __float2half((float)acc[c] * alpha + p * __half2float(vs[j * d + c]));
      m = m_new;
    }
    __syncthreads();
  }
  if (row < n)
    for (int c = 0; c < d; ++c) o[head + (int64_t)row * d + c] = __float2half((float)acc[c] / l);
}

extern "C" void launch(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n,
                       int64_t d, void* workspace, cudaStream_t stream) {
  dim3 grid((unsigned)((n + kQueries - 1) / kQueries), (unsigned)h);
  flash<<<grid, kQueries, 0, stream>>>(q, k, v, o, (int)n, (int)d);
}
