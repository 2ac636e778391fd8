// cause: logic
// mistake: the products are taken by absolute value.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void sgemm_split(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  // One warp per element of c; its lanes go over k.
  const int lane = threadIdx.x;
  for (int64_t e = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; e < m * n;
       e += (int64_t)gridDim.x * blockDim.y) {
    const int64_t row = e / n, col = e % n;
    float v = 0.0f;
    for (int64_t p = lane; p < k; p += 32) {
      v += fabsf(a[row * k + p] * b[p * n + col]);
    }
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if (lane == 0) c[e] = v;
  }
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  sgemm_split<<<256, dim3(32, 8), 0, stream>>>(a, b, c, m, k, n);
}
