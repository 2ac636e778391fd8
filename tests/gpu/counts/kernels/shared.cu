// Shared memory: which words the lanes of a warp read together. Every block has one warp. It fills 1,024
// words by conflict-free stores and then loads sixteen times, one vector further each time, so that the loads
// outnumber the other accesses.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWords = 1024, kTimes = 16, kBlocks = 16;

__device__ float total(float v) { return v; }
__device__ float total(float2 v) { return v.x + v.y; }
__device__ float total(float4 v) { return (v.x + v.y) + (v.z + v.w); }

/// `first`: where the lane begins, in elements of T. An inactive lane only fills.
template <class T>
__device__ void fill_and_load(const float* x, float* y, int first, bool active = true) {
  __shared__ __align__(16) float s[kWords];
#pragma unroll 1
  for (int i = threadIdx.x; i < kWords; i += 32) s[i] = x[i];
  __syncwarp();
  if (!active) return;
  const T* vectors = reinterpret_cast<const T*>(s);
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < kTimes; ++k) sum += total(vectors[first + k]);
  y[blockIdx.x * 32 + threadIdx.x] = sum;
}

#define LOADS(name, T, first) \
  __global__ void name(const float* x, float* y) { \
    const int lane = threadIdx.x; \
    fill_and_load<T>(x, y, first); \
  }
LOADS(words_in_a_row, float, lane)
LOADS(words_stride_2, float, 2 * lane)
LOADS(words_stride_3, float, 3 * lane)
LOADS(words_stride_16, float, 16 * lane)
LOADS(words_one_for_all, float, 0 * lane)
LOADS(words_in_pairs, float, lane / 2)
LOADS(doubles_in_a_row, float2, lane)
LOADS(doubles_stride_2, float2, 2 * lane)
LOADS(doubles_one_for_all, float2, 0 * lane)
LOADS(doubles_in_pairs, float2, lane / 2)
LOADS(doubles_halves_alike, float2, lane % 16)
LOADS(doubles_quads, float2, lane / 4)
LOADS(quads_in_a_row, float4, lane)
LOADS(quads_stride_2, float4, 2 * lane)
LOADS(quads_one_for_all, float4, 0 * lane)
LOADS(quads_in_pairs, float4, lane / 2)
LOADS(quads_by_four, float4, lane / 4)
LOADS(quads_by_eight, float4, lane / 8)
LOADS(quads_every_eighth, float4, lane % 8)
LOADS(quads_every_fourth, float4, lane % 4)
// The partner of a lane is the next but one; only one half of the warp forms pairs; every second lane does
// nothing.
LOADS(doubles_next_but_one, float2, lane % 2 + lane / 4 * 2)
LOADS(quads_next_but_one, float4, lane % 2 + lane / 4 * 2)
LOADS(quads_half_in_pairs, float4, lane < 16 ? lane / 2 : lane)
LOADS(quads_pairs_stride_2, float4, lane / 2 * 2)
#define LOADS_OF_EVEN_LANES(name, T, first) \
  __global__ void name(const float* x, float* y) { \
    const int lane = threadIdx.x; \
    fill_and_load<T>(x, y, first, lane % 2 == 0); \
  }
LOADS_OF_EVEN_LANES(doubles_even_lanes, float2, lane / 2)
LOADS_OF_EVEN_LANES(quads_even_lanes, float4, lane / 2)

// The same for stores, each time to other vectors; one word per lane is read back.
constexpr int kStoredWords = kTimes * 64 * 4;
template <class T>
__device__ void store_and_load(const float* x, float* y, int first) {
  __shared__ __align__(16) float s[kStoredWords];
  T value = reinterpret_cast<const T*>(x)[threadIdx.x];
  T* vectors = reinterpret_cast<T*>(s);
#pragma unroll 1
  for (int k = 0; k < kTimes; ++k) vectors[first + 64 * k] = value;
  __syncwarp();
  y[blockIdx.x * 32 + threadIdx.x] = s[first * (sizeof(T) / sizeof(float))];
}
#define STORES(name, T, first) \
  __global__ void name(const float* x, float* y) { \
    const int lane = threadIdx.x; \
    store_and_load<T>(x, y, first); \
  }
STORES(store_words, float, lane)
STORES(store_doubles, float2, lane)
STORES(store_quads, float4, lane)
STORES(store_quads_stride_2, float4, 2 * lane)

extern "C" void launch(const float* x, float* y, int64_t /*n*/, void* /*workspace*/, cudaStream_t stream) {
  words_in_a_row<<<kBlocks, 32, 0, stream>>>(x, y);
  words_stride_2<<<kBlocks, 32, 0, stream>>>(x, y);
  words_stride_3<<<kBlocks, 32, 0, stream>>>(x, y);
  words_stride_16<<<kBlocks, 32, 0, stream>>>(x, y);
  words_one_for_all<<<kBlocks, 32, 0, stream>>>(x, y);
  words_in_pairs<<<kBlocks, 32, 0, stream>>>(x, y);
  doubles_in_a_row<<<kBlocks, 32, 0, stream>>>(x, y);
  doubles_stride_2<<<kBlocks, 32, 0, stream>>>(x, y);
  doubles_one_for_all<<<kBlocks, 32, 0, stream>>>(x, y);
  doubles_in_pairs<<<kBlocks, 32, 0, stream>>>(x, y);
  doubles_halves_alike<<<kBlocks, 32, 0, stream>>>(x, y);
  doubles_quads<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_in_a_row<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_stride_2<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_one_for_all<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_in_pairs<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_by_four<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_by_eight<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_every_eighth<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_every_fourth<<<kBlocks, 32, 0, stream>>>(x, y);
  doubles_next_but_one<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_next_but_one<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_half_in_pairs<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_pairs_stride_2<<<kBlocks, 32, 0, stream>>>(x, y);
  doubles_even_lanes<<<kBlocks, 32, 0, stream>>>(x, y);
  quads_even_lanes<<<kBlocks, 32, 0, stream>>>(x, y);
  store_words<<<kBlocks, 32, 0, stream>>>(x, y);
  store_doubles<<<kBlocks, 32, 0, stream>>>(x, y);
  store_quads<<<kBlocks, 32, 0, stream>>>(x, y);
  store_quads_stride_2<<<kBlocks, 32, 0, stream>>>(x, y);
}
