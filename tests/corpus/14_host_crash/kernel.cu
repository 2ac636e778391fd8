// Row 14: launch() dereferences a null pointer.
#include <cuda_runtime.h>

#include <cstdint>

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  *static_cast<volatile int*>(nullptr) = 1;
  (void)x, (void)y, (void)rows, (void)cols, (void)stream;
}
