// Row 14: A kernel launches the kernel that does the work. That needs nvcc -rdc=true, which no build of the judge has.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void count(const uint8_t* data, int32_t* counts, int64_t n) {
  for (int64_t i = blockIdx.x * int64_t{256} + threadIdx.x; i < n; i += int64_t{256} * gridDim.x) atomicAdd(&counts[data[i]], 1);
}

__global__ void clear_then_count(const uint8_t* data, int32_t* counts, int64_t n) {
  counts[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x == 0) count<<<64, 256, 0, cudaStreamTailLaunch>>>(data, counts, n);
}

extern "C" void launch(const uint8_t* data, int32_t* counts, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  clear_then_count<<<1, 256, 0, stream>>>(data, counts, n);
}
