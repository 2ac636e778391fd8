// Honest: Counts with cuda::atomic_ref, in shared memory for a block and in global memory for the device.
#include <cuda/atomic>
#include <cuda_runtime.h>

#include <cstdint>

__global__ void clear(int32_t* counts) { counts[threadIdx.x] = 0; }

__global__ void count(const uint8_t* data, int32_t* counts, int64_t n) {
  __shared__ int bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t i = blockIdx.x * int64_t{256} + threadIdx.x; i < n; i += int64_t{256} * gridDim.x)
    cuda::atomic_ref<int, cuda::thread_scope_block>(bins[data[i]]).fetch_add(1, cuda::memory_order_relaxed);
  __syncthreads();
  cuda::atomic_ref<int32_t, cuda::thread_scope_device> total(counts[threadIdx.x]);
  total.fetch_add(bins[threadIdx.x], cuda::std::memory_order_relaxed);
}

extern "C" void launch(const uint8_t* data, int32_t* counts, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  clear<<<1, 256, 0, stream>>>(counts);
  count<<<32, 256, 0, stream>>>(data, counts, n);
}
