// The sgemm kernels of many blog posts, step by step: naive, coalesced, shared, 1-D and 2-D register tiles,
// vector loads.
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))

__global__ void sgemm_naive(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const uint x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < M && y < N) {
    float tmp = 0.0;
    for (int i = 0; i < K; ++i) tmp += A[x * K + i] * B[i * N + y];
    C[x * N + y] = alpha * tmp + beta * C[x * N + y];
  }
}
template <const uint BLOCKSIZE>
__global__ void sgemm_coalesced(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const int row = blockIdx.x * BLOCKSIZE + threadIdx.x / BLOCKSIZE, col = blockIdx.y * BLOCKSIZE + threadIdx.x % BLOCKSIZE;
  if (row < M && col < N) {
    float tmp = 0.0;
    for (int i = 0; i < K; ++i) tmp += A[row * K + i] * B[i * N + col];
    C[row * N + col] = alpha * tmp + beta * C[row * N + col];
  }
}
template <const int BS>
__global__ void sgemm_shared(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  __shared__ float As[BS * BS], Bs[BS * BS];
  const uint row = blockIdx.x, col = blockIdx.y, tc = threadIdx.x % BS, tr = threadIdx.x / BS;
  A += row * BS * K;
  B += col * BS;
  C += row * BS * N + col * BS;
  float tmp = 0.0;
  for (int k = 0; k < K; k += BS) {
    As[tr * BS + tc] = A[tr * K + tc];
    Bs[tr * BS + tc] = B[tr * N + tc];
    __syncthreads();
    A += BS;
    B += BS * N;
#pragma unroll
    for (int d = 0; d < BS; ++d) tmp += As[tr * BS + d] * Bs[d * BS + tc];
    __syncthreads();
  }
  C[tr * N + tc] = alpha * tmp + beta * C[tr * N + tc];
}
template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
    sgemm_2d(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C) {
  const int tc = threadIdx.x % (BN / TN), tr = threadIdx.x / (BN / TN);
  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];
  A += blockIdx.y * BM * K;
  B += blockIdx.x * BN;
  C += blockIdx.y * BM * N + blockIdx.x * BN;
  const uint ira = threadIdx.x / (BK / 4), ica = threadIdx.x % (BK / 4), irb = threadIdx.x / (BN / 4), icb = threadIdx.x % (BN / 4);
  float result[TM * TN] = {0.0}, regM[TM] = {0.0}, regN[TN] = {0.0};
  for (uint k = 0; k < K; k += BK) {
    float4 tmp = reinterpret_cast<float4 *>(&A[ira * K + ica * 4])[0];
    As[(ica * 4 + 0) * BM + ira] = tmp.x;
    As[(ica * 4 + 1) * BM + ira] = tmp.y;
    As[(ica * 4 + 2) * BM + ira] = tmp.z;
    As[(ica * 4 + 3) * BM + ira] = tmp.w;
    reinterpret_cast<float4 *>(&Bs[irb * BN + icb * 4])[0] = reinterpret_cast<float4 *>(&B[irb * N + icb * 4])[0];
    __syncthreads();
    A += BK;
    B += BK * N;
    for (uint d = 0; d < BK; ++d) {
      for (uint i = 0; i < TM; ++i) regM[i] = As[d * BM + tr * TM + i];
      for (uint i = 0; i < TN; ++i) regN[i] = Bs[d * BN + tc * TN + i];
      for (uint m = 0; m < TM; ++m)
        for (uint n = 0; n < TN; ++n) result[m * TN + n] += regM[m] * regN[n];
    }
    __syncthreads();
  }
  for (uint m = 0; m < TM; m += 1)
    for (uint n = 0; n < TN; n += 4) {
      float4 tmp = reinterpret_cast<float4 *>(&C[(tr * TM + m) * N + tc * TN + n])[0];
      tmp.x = alpha * result[m * TN + n] + beta * tmp.x;
      tmp.y = alpha * result[m * TN + n + 1] + beta * tmp.y;
      tmp.z = alpha * result[m * TN + n + 2] + beta * tmp.z;
      tmp.w = alpha * result[m * TN + n + 3] + beta * tmp.w;
      reinterpret_cast<float4 *>(&C[(tr * TM + m) * N + tc * TN + n])[0] = tmp;
    }
}

static void run(int number, int n, float alpha, float *A, float *B, float beta, float *C) {
  switch (number) {
    case 0: sgemm_naive<<<dim3(CEIL_DIV(n, 32), CEIL_DIV(n, 32)), dim3(32, 32)>>>(n, n, n, alpha, A, B, beta, C); break;
    case 1: sgemm_coalesced<32><<<dim3(CEIL_DIV(n, 32), CEIL_DIV(n, 32)), dim3(32 * 32)>>>(n, n, n, alpha, A, B, beta, C); break;
    case 2: {
      cudaFuncSetAttribute(sgemm_shared<32>, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
      sgemm_shared<32><<<dim3(CEIL_DIV(n, 32), CEIL_DIV(n, 32)), dim3(32 * 32)>>>(n, n, n, alpha, A, B, beta, C);
      break;
    }
    case 3: sgemm_2d<64, 64, 8, 8, 4><<<dim3(CEIL_DIV(n, 64), CEIL_DIV(n, 64)), dim3(64 * 64 / 32)>>>(n, n, n, alpha, A, B, beta, C); break;
    default: exit(1);
  }
}

int main() {
  const int n = 128;
  std::vector<float> a(n * n), b(n * n), c(n * n), want(n * n);
  for (int i = 0; i < n * n; ++i) a[i] = float(i % 13 - 6), b[i] = float(i % 7 - 3), c[i] = float(i % 5);
  float *dA, *dB, *dC;
  cudaMalloc((void **)&dA, n * n * 4);
  cudaMalloc((void **)&dB, n * n * 4);
  cudaMalloc((void **)&dC, n * n * 4);
  cudaMemcpy(dA, a.data(), n * n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dB, b.data(), n * n * 4, cudaMemcpyHostToDevice);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float s = 0;
      for (int k = 0; k < n; ++k) s += a[i * n + k] * b[k * n + j];
      want[i * n + j] = 0.5f * s + 3.0f * c[i * n + j];
    }
  for (int kernel = 0; kernel < 4; ++kernel) {
    cudaMemcpy(dC, c.data(), n * n * 4, cudaMemcpyHostToDevice);
    run(kernel, n, 0.5f, dA, dB, 3.0f, dC);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    std::vector<float> got(n * n);
    cudaMemcpy(got.data(), dC, n * n * 4, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n * n; ++i)
      if (got[i] != want[i]) {
        printf("FAIL kernel %d at %d: %f, not %f\n", kernel, i, got[i], want[i]);
        return 1;
      }
  }
  printf("PASS\n");
}
