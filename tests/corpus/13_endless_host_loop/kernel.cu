// Row 13: launch() itself never returns.
#include <cuda_runtime.h>

#include <cstdint>

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  for (volatile int64_t i = 0;; i = i + 1) {
  }
  (void)x, (void)y, (void)rows, (void)cols, (void)stream;
}
