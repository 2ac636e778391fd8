// Row 16: Counts with an atomic load and an atomic store (memory_order_seq_cst), which together are no atomic addition.
#include <cuda/atomic>
#include <cuda_runtime.h>

#include <cstdint>

__global__ void clear(int32_t* counts) { counts[threadIdx.x] = 0; }

__global__ void count(const uint8_t* data, int32_t* counts, int64_t n) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < n; i += threads) {
    cuda::atomic_ref<int32_t, cuda::thread_scope_device> bin(counts[data[i]]);
    bin.store(bin.load(cuda::memory_order_seq_cst) + 1, cuda::memory_order_seq_cst);
  }
}

extern "C" void launch(const uint8_t* data, int32_t* counts, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  clear<<<1, 256, 0, stream>>>(counts);
  count<<<8, 128, 0, stream>>>(data, counts, n);
}
