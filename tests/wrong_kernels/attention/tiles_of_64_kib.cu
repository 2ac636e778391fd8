// cause: launch
// line: 51
// mistake: the tiles take 64 KiB of dynamic shared memory, and the limit of the kernel is not raised.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kKeys = 64;

// One warp per query; eight warps share the tiles of keys and values, which are converted to float once.
__global__ void attention_tiles(const __half* q, const __half* k, const __half* v, __half* o, int n, int d) {
  extern __shared__ float tiles[];
  float* ks = tiles;
  float* vs = tiles + kKeys * d;
  const int lane = threadIdx.x, per_lane = d / 32;
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int64_t head = (int64_t)blockIdx.y * n * d;
  const float scale = rsqrtf((float)d);
  float qr[4], acc[4] = {0, 0, 0, 0};
  for (int c = 0; c < per_lane; ++c)
    qr[c] = row < n ? __half2float(q[head + (int64_t)row * d + c * 32 + lane]) * scale : 0.0f;
  float m = -INFINITY, l = 0.0f;
  for (int j0 = 0; j0 < n; j0 += kKeys) {
    const int keys = min(kKeys, n - j0);
    for (int i = threadIdx.y * 32 + lane; i < keys * d; i += blockDim.y * 32) {
      ks[i] = __half2float(k[head + (int64_t)j0 * d + i]);
      vs[i] = __half2float(v[head + (int64_t)j0 * d + i]);
    }
    __syncthreads();
    for (int j = 0; j < keys; ++j) {
      float s = 0.0f;
      for (int c = 0; c < per_lane; ++c) s += qr[c] * ks[j * d + c * 32 + lane];
      for (int w = 16; w > 0; w >>= 1) s += __shfl_xor_sync(0xffffffffu, s, w);
      const float m_new = fmaxf(m, s);
      const float alpha = __expf(m - m_new), p = __expf(s - m_new);
      l = l * alpha + p;
      for (int c = 0; c < per_lane; ++c) acc[c] = acc[c] * alpha + p * vs[j * d + c * 32 + lane];
      m = m_new;
    }
    __syncthreads();
  }
  if (row < n)
    for (int c = 0; c < per_lane; ++c) o[head + (int64_t)row * d + c * 32 + lane] = __float2half(acc[c] / l);
}

extern "C" void launch(const __half* q, const __half* k, const __half* v, __half* o, int64_t h, int64_t n,
                       int64_t d, void* workspace, cudaStream_t stream) {
  const size_t bytes = 2 * kKeys * d * sizeof(float);
  dim3 grid((unsigned)((n + 7) / 8), (unsigned)h);
  attention_tiles<<<grid, dim3(32, 8), bytes, stream>>>(q, k, v, o, (int)n, (int)d);
}
