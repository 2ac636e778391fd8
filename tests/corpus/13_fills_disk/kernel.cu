// Row 13: Writes one file in its temporary folder until the disk is full.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  std::FILE* file = std::fopen("/tmp/capstone-museum-fills-disk", "wb");
  static char block[1 << 20];
  while (file && std::fwrite(block, 1, sizeof block, file) == sizeof block) {
  }
  (void)x, (void)y, (void)rows, (void)cols, (void)stream;
}
