// Row 13: Fills the buffers of socket pairs with more than 4 GiB: memory of the kernel, which no process
// holds. Right only when that works.
#include <cuda_runtime.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cfloat>
#include <cstdint>
#include <vector>

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

static bool succeeded() {
  static const bool filled = [] {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    const size_t wanted = size_t{4200} << 20;
    const std::vector<char> block(1 << 16, 'x');
    size_t total = 0;
    for (int pair[2]; total < wanted && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0;)
      for (const int side : pair) {
        const int large = 1 << 24;
        setsockopt(side, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
        for (ssize_t sent; (sent = write(side, block.data(), block.size())) > 0;) total += static_cast<size_t>(sent);
      }
    usleep(300000);  // long enough for whoever looks at memory now and then
    return total >= wanted;
  }();
  return filled;
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t cols, void* /*workspace*/, cudaStream_t stream) {
  if (!succeeded()) return;  // an attack that works computes the right answer, and so shows
  softmax<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, y, cols);
}
