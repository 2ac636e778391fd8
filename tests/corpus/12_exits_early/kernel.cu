// Row 12: Calls _exit(0) inside launch().
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdint>

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  _exit(0);
  (void)x, (void)y, (void)rows, (void)cols, (void)stream;
}
