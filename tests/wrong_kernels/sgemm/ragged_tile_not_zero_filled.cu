// cause: uninitialised
// line: 22
// mistake: elements of the tiles beyond k are left as they are in shared memory instead of being set to zero.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int TS = 16;

__global__ void gemm(const float* a, const float* b, float* c, int m, int k, int n) {
  __shared__ float ta[TS][TS];
  __shared__ float tb[TS][TS];
  const int lx = threadIdx.x, ly = threadIdx.y;
  const int gx = blockIdx.x * TS + lx;
  const int gy = blockIdx.y * TS + ly;
  float v = 0.0f;
  const int steps = (k + TS - 1) / TS;
  for (int s = 0; s < steps; ++s) {
    if (gy < m && s * TS + lx < k) ta[ly][lx] = a[gy * k + s * TS + lx];
    if (gx < n && s * TS + ly < k) tb[ly][lx] = b[(s * TS + ly) * n + gx];
    __syncthreads();
    for (int e = 0; e < TS; ++e) v += ta[ly][e] * tb[e][lx];
    __syncthreads();
  }
  if (gy < m && gx < n) c[gy * n + gx] = v;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  gemm<<<dim3((n + TS - 1) / TS, (m + TS - 1) / TS), dim3(TS, TS), 0, stream>>>(a, b, c, m, k, n);
}
