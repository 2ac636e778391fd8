// Row 13: Starts 64 children that sleep for ten minutes, and then waits for them.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  for (int i = 0; i < 64; ++i)
    if (fork() == 0) {
      sleep(600);
      _exit(0);
    }
  while (wait(nullptr) > 0) {
  }
  (void)x, (void)y, (void)rows, (void)cols, (void)stream;
}
