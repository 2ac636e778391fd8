// cause: misaligned
// line: 19
// mistake: one element is peeled off, and the rest is read as float4 from an address that is not aligned.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void init(float* total) { total[0] = 0.0f; }

__global__ void sum_peeled(const float* x, float* total, int64_t n) {
  const int64_t id = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  const int64_t head = 1;
  float acc = 0.0f;
  for (int64_t i = id; i < head; i += step) acc += x[i];
  const int64_t vecs = (n - head) / 4;
  const float4* body = reinterpret_cast<const float4*>(x + head);
  for (int64_t i = id; i < vecs; i += step) {
    float4 v = body[i];
    acc += v.x + v.y + v.z + v.w;
  }
  for (int64_t i = head + vecs * 4 + id; i < n; i += step) acc += x[i];
  for (int o = 16; o > 0; o >>= 1) acc += __shfl_down_sync(0xffffffffu, acc, o);
  if (threadIdx.x % 32 == 0) atomicAdd(total, acc);
}

extern "C" void launch(const float* x, float* total, int64_t n, void* workspace, cudaStream_t stream) {
  init<<<1, 1, 0, stream>>>(total);
  sum_peeled<<<40, 256, 0, stream>>>(x, total, n);
}
