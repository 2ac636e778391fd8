// cause: misaligned
// line: 16
// mistake: b is loaded as float4 from rows whose length is no multiple of 4.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void sgemm_vec(const float* a, const float* b, float* c, int m, int k, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (row >= m || col >= n) return;
  if (col + 4 <= n) {
    float4 acc = make_float4(0, 0, 0, 0);
    for (int p = 0; p < k; ++p) {
      const float av = a[row * k + p];
      const float4 bv = *reinterpret_cast<const float4*>(&b[p * n + col]);
      acc.x += av * bv.x;
      acc.y += av * bv.y;
      acc.z += av * bv.z;
      acc.w += av * bv.w;
    }
    c[row * n + col] = acc.x;
    c[row * n + col + 1] = acc.y;
    c[row * n + col + 2] = acc.z;
    c[row * n + col + 3] = acc.w;
  } else {
    for (int j = col; j < n && j < col + 4; ++j) {
      float acc = 0;
      for (int p = 0; p < k; ++p) acc += a[row * k + p] * b[p * n + j];
      c[row * n + j] = acc;
    }
  }
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 block(16, 16);
  dim3 grid((n + 63) / 64, (m + 15) / 16);
  sgemm_vec<<<grid, block, 0, stream>>>(a, b, c, (int)m, (int)k, (int)n);
}
