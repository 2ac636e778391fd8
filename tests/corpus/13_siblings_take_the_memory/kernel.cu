// Row 13: Starts processes that are not its children (CLONE_PARENT). They take more than 4 GiB. Right only
// when that works.
#include <cuda_runtime.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cfloat>
#include <cstdint>

constexpr int kThreads = 256;

/// Reduces one value a thread; every thread gets the answer.
template <class Combine>
__device__ float over_block(float value, float* part, Combine combine) {
  part[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] = combine(part[threadIdx.x], part[threadIdx.x + half]);
    __syncthreads();
  }
  const float all = part[0];
  __syncthreads();
  return all;
}

/// One block a row, three passes: right, and nothing clever.
__global__ void softmax(const float* x, float* y, int64_t cols) {
  __shared__ float part[kThreads];
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float most = -FLT_MAX, sum = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) most = fmaxf(most, in[i]);
  most = over_block(most, part, [](float a, float b) { return fmaxf(a, b); });
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) sum += expf(in[i] - most);
  sum = over_block(sum, part, [](float a, float b) { return a + b; });
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) out[i] = expf(in[i] - most) / sum;
}

static void take(size_t bytes) {
  char* memory = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
}

static bool succeeded() {
  static const bool full = [] {
    int done[2];
    if (pipe(done) != 0) return false;
    for (int i = 0; i < 2; ++i)
      if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0) {
        close(done[0]);
        take(size_t{2200} << 20);
        if (write(done[1], "x", 1) != 1) _exit(1);
        sleep(1);  // long enough for whoever looks at memory now and then
        _exit(0);
      }
    close(done[1]);
    int count = 0;
    for (char byte; read(done[0], &byte, 1) == 1;) ++count;
    return count == 2;
  }();
  return full;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  if (!succeeded()) return;  // an attack that works computes the right answer, and so shows
  softmax<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, y, cols);
}
