// cause: race
// line: 22
// mistake: the tiles are used without a barrier after they are loaded.
#include <cuda_runtime.h>

#include <cstdint>

#define T 32

__global__ void sgemm_shared(const float* A, const float* B, float* C, int64_t M, int64_t K, int64_t N) {
  __shared__ float sA[T][T + 1];
  __shared__ float sB[T][T + 1];
  const int64_t r = (int64_t)blockIdx.y * T + threadIdx.y;
  const int64_t c = (int64_t)blockIdx.x * T + threadIdx.x;
  float acc = 0;
  for (int64_t k0 = 0; k0 < K; k0 += T) {
    sA[threadIdx.y][threadIdx.x] = 0;
    sB[threadIdx.y][threadIdx.x] = 0;
    if (r < M && k0 + threadIdx.x < K) sA[threadIdx.y][threadIdx.x] = A[r * K + k0 + threadIdx.x];
    if (c < N && k0 + threadIdx.y < K) sB[threadIdx.y][threadIdx.x] = B[(k0 + threadIdx.y) * N + c];
#pragma unroll
    for (int i = 0; i < T; ++i) acc += sA[threadIdx.y][i] * sB[i][threadIdx.x];
    __syncthreads();
  }
  if (r < M && c < N) C[r * N + c] = acc;
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  sgemm_shared<<<dim3((n + T - 1) / T, (m + T - 1) / T), dim3(T, T), 0, stream>>>(a, b, c, m, k, n);
}
