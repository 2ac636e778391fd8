// cause: uninitialised
// line: 31
// mistake: the register tile of the accumulators is never set to zero.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int BM = 32, BN = 32, BK = 8;

// 64 threads, each owns 4 x 4 elements of a 32 x 32 tile.
__global__ void sgemm_register_tile(const float* a, const float* b, float* c, int m, int k, int n) {
  __shared__ float as[BM][BK];
  __shared__ float bs[BK][BN];
  const int tid = threadIdx.x;
  const int tr = tid / 8, tc = tid % 8;
  const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
  float acc[4][4];

  for (int k0 = 0; k0 < k; k0 += BK) {
    for (int i = tid; i < BM * BK; i += 64) {
      int r = i / BK, p = i % BK;
      as[r][p] = row0 + r < m && k0 + p < k ? a[(row0 + r) * k + k0 + p] : 0.0f;
    }
    for (int i = tid; i < BK * BN; i += 64) {
      int p = i / BN, q = i % BN;
      bs[p][q] = k0 + p < k && col0 + q < n ? b[(k0 + p) * n + col0 + q] : 0.0f;
    }
    __syncthreads();
    for (int p = 0; p < BK; ++p)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) acc[i][j] += as[tr * 4 + i][p] * bs[p][tc * 4 + j];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      int r = row0 + tr * 4 + i, q = col0 + tc * 4 + j;
      if (r < m && q < n) c[r * n + q] = acc[i][j];
    }
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                       void* workspace, cudaStream_t stream) {
  dim3 grid((n + BN - 1) / BN, (m + BM - 1) / BM);
  sgemm_register_tile<<<grid, 64, 0, stream>>>(a, b, c, (int)m, (int)k, (int)n);
}
