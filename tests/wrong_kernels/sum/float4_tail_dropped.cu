// cause: partial_reduction
// mistake: n / 4 vectors are added, and the last n % 4 elements are left out.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void set_zero(float* total) { total[0] = 0; }

__global__ void sum_vec4(const float4* x4, const float* x, float* total, int64_t n) {
  const int64_t id = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  float acc = 0.0f;
  for (int64_t i = id; i < n / 4; i += step) {
    const float4 v = x4[i];
    acc += (v.x + v.y) + (v.z + v.w);
  }
  for (int d = 16; d > 0; d /= 2) acc += __shfl_down_sync(0xffffffffu, acc, d);
  if (threadIdx.x % 32 == 0) atomicAdd(total, acc);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  set_zero<<<1, 1, 0, stream>>>(total);
  sum_vec4<<<64, 256, 0, stream>>>(reinterpret_cast<const float4*>(x), x, total, n);
}
