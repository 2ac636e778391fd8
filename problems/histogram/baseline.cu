// Native baseline: a histogram of bytes as a library's portable kernel does it: one histogram a warp in shared memory, four
// bytes a load, added to the result at the end.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace {

constexpr int kBins = 256, kThreads = 256, kWarps = kThreads / 32;
constexpr int kMostBlocks = 1056;

__global__ void histogram(const uint8_t* __restrict__ data, int32_t* __restrict__ counts, int64_t n) {
  __shared__ int mine[kWarps][kBins];
  for (int i = threadIdx.x; i < kWarps * kBins; i += kThreads) mine[i / kBins][i % kBins] = 0;
  __syncthreads();
  int* bins = mine[threadIdx.x / 32];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, words = n / 4;
  for (int64_t i = first; i < words; i += step) {
    const uint32_t word = reinterpret_cast<const uint32_t*>(data)[i];
    for (int b = 0; b < 4; ++b) atomicAdd(&bins[word >> (8 * b) & 0xff], 1);
  }
  if (words * 4 + first < n) atomicAdd(&bins[data[words * 4 + first]], 1);
  __syncthreads();
  for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
    int sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += mine[w][bin];
    if (sum != 0) atomicAdd(&counts[bin], sum);
  }
}

}  // namespace

extern "C" const char* baseline_label() { return "native histogram: one a warp in shared memory"; }

extern "C" void launch(const uint8_t* data /*[n]*/, int32_t* counts /*[256]*/, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  cudaMemsetAsync(counts, 0, kBins * sizeof(int32_t), stream);
  const int64_t blocks = std::clamp<int64_t>(n / (4 * kThreads), 1, kMostBlocks);
  histogram<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(data, counts, n);
}
