// Row 1: Launches a kernel that does nothing; the output keeps whatever was there.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void nothing(const float*, float*) {}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  nothing<<<static_cast<unsigned>((rows * cols + 255) / 256), 256, 0, stream>>>(x, y);
}
