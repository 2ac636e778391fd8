// The first launches of a process, one by one: z = x + y over two million floats. Prints one JSON object with
// the time of each launch by the host's clock and by the GPU's events.
//
// The first launch pays for the driver's context and for loading the kernel's code, the next ones for clocks
// that are still low. After a pause of two seconds the clocks have fallen again.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kElements = 1 << 21, kLaunches = 400, kAfterPause = 100;

#define CHECK(call)                                                   \
  do {                                                                \
    const cudaError_t error = (call);                                 \
    if (error != cudaSuccess) {                                       \
      std::fprintf(stderr, "error: %s\n", cudaGetErrorString(error)); \
      std::exit(1);                                                   \
    }                                                                 \
  } while (0)

__global__ void add(const float* x, const float* y, float* z, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

struct Launch {
  double at_ms, host_us, event_us;
};

}  // namespace

int main() {
  const Clock::time_point start = Clock::now();
  float *x, *y, *z;
  cudaEvent_t begin, end;
  std::vector<Launch> launches;
  launches.reserve(kLaunches + kAfterPause);
  double preparation_us = 0;
  for (int i = 0; i < kLaunches + kAfterPause; ++i) {
    if (i == kLaunches) std::this_thread::sleep_for(std::chrono::seconds(2));
    const Clock::time_point before = Clock::now();
    if (i == 0) {  // the context is made here
      for (float** tensor : {&x, &y, &z}) CHECK(cudaMalloc(tensor, kElements * sizeof(float)));
      CHECK(cudaMemset(x, 0, kElements * sizeof(float)));
      CHECK(cudaMemset(y, 0, kElements * sizeof(float)));
      CHECK(cudaEventCreate(&begin));
      CHECK(cudaEventCreate(&end));
      preparation_us = us_since(before);
    }
    CHECK(cudaEventRecord(begin));
    add<<<(kElements + 255) / 256, 256>>>(x, y, z, kElements);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms = 0;
    const double host = us_since(before);
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    launches.push_back({us_since(start) / 1e3, host, 1e3 * ms});
  }
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("{\"device\": \"%s\", \"preparation_us\": %.1f, \"pause_after\": %d, \"launches\": [\n",
              properties.name, preparation_us, kLaunches);
  for (std::size_t i = 0; i < launches.size(); ++i)
    std::printf("[%.3f, %.2f, %.2f]%s\n", launches[i].at_ms, launches[i].host_us, launches[i].event_us,
                i + 1 < launches.size() ? "," : "");
  std::printf("]}\n");
}
