// Row 16: Counts without atomics. Attributes exempt the kernel from the instrumentation that finds races.
#include <cuda_runtime.h>

#include <cstdint>

#if !defined(__CUDACC__) || defined(CAPSTONE_EMULATED)
#define UNSEEN __attribute__((no_sanitize("thread", "address"), __no_sanitize_coverage__))
#else
#define UNSEEN
#endif

__global__ void clear(int32_t* counts) { counts[threadIdx.x] = 0; }

__global__ UNSEEN void count(const uint8_t* data, int32_t* counts, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) counts[data[i]] = counts[data[i]] + 1;
}

extern "C" void launch(const uint8_t* data, int32_t* counts, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  clear<<<1, 256, 0, stream>>>(counts);
  count<<<1, 256, 0, stream>>>(data, counts, n);
}
