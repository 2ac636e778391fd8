// Rung 1: one thread, one element, one atomic addition in global memory.
//
// Changed     nothing yet: the counters lie in global memory, and an addition to them is atomic, because two
//             threads may want the same one at the same time.
// Why         the beginning of the ladder: right, and as slow as 256 addresses that the whole GPU queues for.
// Prediction  the L2 cache adds a few elements a clock and address; a few percent of the bandwidth.
//
// Shapes      data [n], counts [256]; n up to 2^31.
// Launch      <<<ceil(n / 256), 256>>> after a memset of the counters.
// Resources   about 10 registers, no shared memory.
// Cost        n additions; n bytes.
// Divides     no divisibility is required: threads past the end leave.
// Source      the definition.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kBins = 256, kThreads = 256;

__global__ void histogram(const uint8_t* __restrict__ data, int32_t* __restrict__ counts, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) atomicAdd(&counts[data[i]], 1);
}

extern "C" void launch(const uint8_t* data /*[n]*/, int32_t* counts /*[256]*/, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  cudaMemsetAsync(counts, 0, kBins * sizeof(int32_t), stream);
  histogram<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(data, counts, n);
}
