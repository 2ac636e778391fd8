// Row 16: Declares its racy code to be part of a system header, with #line, which names a header of the system.
#include <cuda_runtime.h>

#include <cstdint>

#line 1 "/usr/include/stdint.h"
template <class T>
inline __attribute__((always_inline)) void add_one(T* counter) {
  T value;
  asm volatile("movl (%1), %0" : "=r"(value) : "r"(counter) : "memory");
  ++value;
  asm volatile("movl %0, (%1)" : : "r"(value), "r"(counter) : "memory");
}
#line 20 "kernel.cu"

__global__ void clear(int32_t* counts) { counts[threadIdx.x] = 0; }

__global__ void count(const uint8_t* data, int32_t* counts, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) add_one(&counts[data[i]]);
}

extern "C" void launch(const uint8_t* data, int32_t* counts, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  clear<<<1, 256, 0, stream>>>(counts);
  count<<<1, 256, 0, stream>>>(data, counts, n);
}
