// cause: precision
// mistake: each thread accumulates in half.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kBlocks = 64, kThreads = 256;

__global__ void sum_half(const float* x, float* part, int64_t n) {
  __shared__ float s[kThreads];
  __half acc = __float2half(0.0f);
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads)
    acc = __hadd(acc, __float2half(x[i]));
  s[threadIdx.x] = __half2float(acc);
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) part[blockIdx.x] = s[0];
}

__global__ void sum_parts(const float* part, float* total) {
  float v = part[threadIdx.x] + part[threadIdx.x + 32];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x == 0) total[0] = v;
}

extern "C" size_t workspace_bytes(int64_t n) { return kBlocks * sizeof(float); }

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  sum_half<<<kBlocks, kThreads, 0, stream>>>(x, (float*)workspace, n);
  sum_parts<<<1, 32, 0, stream>>>((float*)workspace, total);
}
