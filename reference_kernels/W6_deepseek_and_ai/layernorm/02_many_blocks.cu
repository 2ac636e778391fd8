// Rung 2: many blocks a sample: partial statistics, then a second kernel normalises.
//
// Changed     a sample is cut into parts of 32 K elements. A block reads its part once and writes its
//             count, mean and sum of squared deviations (about the mean). A block of the second kernel
//             merges all parts of its sample and writes one part of the result. Loads and stores are 16
//             bytes wide.
// Why         rung 1 runs on 16 of 132 multiprocessors. Now 2048 blocks run, and the statistics need one
//             pass: each thread subtracts the first value that it has seen before it sums squares, so
//             nothing cancels, and the merge of (count, mean, squares) is exact algebra.
// Prediction  x twice, y once, gamma and beta 16 times (partly from L2): 0.8 GB from memory and 0.5 GB of
//             parameters, 0.25 to 0.3 ms. More than 5x rung 1.
// Came        332 us on an H100, 1717 GB/s, 6.43 times the rung before. 411 % of the native baseline.
//
// Shapes      x, y [n, c, h, w]; gamma, beta [c, h, w]; any sizes.
// Launch      <<<(parts, n), 256>>> twice.
// Resources   about 40 registers; 96 bytes of shared memory; 12 bytes of workspace for each part.
// Cost        8 n c h w FLOPs; x is read twice.
// Divides     c * h * w % 4 == 0 for 16-byte accesses; other shapes take the same kernels with scalars.
// Source      the merge: T. Chan, G. Golub and R. LeVeque, "Updating formulae and a pairwise algorithm
//             for computing sample variances", 1979.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int64_t kPart = 32768;  // elements a block

/// What is known of some elements: how many, their mean, the sum of squared deviations from it.
struct Moments {
  float count, mean, squares;
};

__device__ Moments merged(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (count == 0) return a;
  const float share = b.count / count, apart = b.mean - a.mean;
  return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

__device__ Moments warp_merge(Moments m) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const Moments other{__shfl_xor_sync(0xffffffffu, m.count, offset),
                        __shfl_xor_sync(0xffffffffu, m.mean, offset),
                        __shfl_xor_sync(0xffffffffu, m.squares, offset)};
    // The lower lane's moments come first in both lanes, so both get the same bits.
    m = threadIdx.x % 32 & offset ? merged(other, m) : merged(m, other);
  }
  return m;
}

/// The moments of all threads of the block, in every thread. `partial` must not be in use.
__device__ Moments block_merge(Moments m, Moments* partial) {
  m = warp_merge(m);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = m;
  __syncthreads();
  m = threadIdx.x % 32 < kWarps ? partial[threadIdx.x % 32] : Moments{0, 0, 0};
  return warp_merge(m);
}

/// The moments of the values that one thread sees, from sums about the first of them.
struct Sums {
  float shift = 0, sum = 0, squares = 0, count = 0;

  __device__ void add(float v) {
    if (count == 0) shift = v;
    const float d = v - shift;
    sum += d, squares += d * d, count += 1;
  }
  __device__ Moments moments() const {
    if (count == 0) return {0, 0, 0};
    const float mean = sum / count;
    return {count, shift + mean, fmaxf(squares - sum * mean, 0.0f)};
  }
};

struct Part {
  int64_t first, last;  // elements of the sample
  __device__ explicit Part(int64_t length) : first(blockIdx.x * kPart), last(min(first + kPart, length)) {}
};

template <bool kVector>
__global__ void __launch_bounds__(kThreads)
    statistics(const float* __restrict__ x, Moments* __restrict__ parts, int64_t length) {
  __shared__ Moments partial[kWarps];
  const Part part(length);
  const float* sample = x + blockIdx.y * length;
  Sums sums;
  if constexpr (kVector) {
#pragma unroll 4
    for (int64_t i = part.first / 4 + threadIdx.x; i < part.last / 4; i += kThreads) {
      const float4 v = reinterpret_cast<const float4*>(sample)[i];
      sums.add(v.x), sums.add(v.y), sums.add(v.z), sums.add(v.w);
    }
  } else {
    for (int64_t i = part.first + threadIdx.x; i < part.last; i += kThreads) sums.add(sample[i]);
  }
  const Moments all = block_merge(sums.moments(), partial);
  if (threadIdx.x == 0) parts[blockIdx.y * gridDim.x + blockIdx.x] = all;
}

template <bool kVector>
__global__ void __launch_bounds__(kThreads)
    normalise(const float* __restrict__ x, const float* __restrict__ gamma, const float* __restrict__ beta,
              const Moments* __restrict__ parts, float* __restrict__ y, float eps, int64_t length) {
  __shared__ Moments partial[kWarps];
  Moments mine{0, 0, 0};
  for (unsigned p = threadIdx.x; p < gridDim.x; p += kThreads)
    mine = merged(mine, parts[blockIdx.y * gridDim.x + p]);
  const Moments all = block_merge(mine, partial);
  const float mean = all.mean, inverse = rsqrtf(all.squares / static_cast<float>(length) + eps);

  const Part part(length);
  const int64_t start = blockIdx.y * length;
  if constexpr (kVector) {
#pragma unroll 4
    for (int64_t i = part.first / 4 + threadIdx.x; i < part.last / 4; i += kThreads) {
      const float4 v = __ldcs(reinterpret_cast<const float4*>(x + start) + i);
      const float4 g = reinterpret_cast<const float4*>(gamma)[i],
                   b = reinterpret_cast<const float4*>(beta)[i];
      __stcs(reinterpret_cast<float4*>(y + start) + i,
             make_float4((v.x - mean) * inverse * g.x + b.x, (v.y - mean) * inverse * g.y + b.y,
                         (v.z - mean) * inverse * g.z + b.z, (v.w - mean) * inverse * g.w + b.w));
    }
  } else {
    for (int64_t i = part.first + threadIdx.x; i < part.last; i += kThreads)
      y[start + i] = (x[start + i] - mean) * inverse * gamma[i] + beta[i];
  }
}

int64_t parts_of(int64_t length) { return (length + kPart - 1) / kPart; }

extern "C" size_t workspace_bytes(int64_t n, int64_t c, int64_t h, int64_t w) {
  return static_cast<size_t>(n * parts_of(c * h * w)) * sizeof(Moments);
}

extern "C" void launch(const float* x /*[n,c,h,w]*/, const float* gamma /*[c,h,w]*/,
                       const float* beta /*[c,h,w]*/, float* y /*[n,c,h,w]*/, float eps, int64_t n, int64_t c,
                       int64_t h, int64_t w, void* workspace, cudaStream_t stream) {
  const int64_t length = c * h * w;
  Moments* parts = static_cast<Moments*>(workspace);
  const dim3 grid(static_cast<unsigned>(parts_of(length)), static_cast<unsigned>(n));
  if (length % 4 == 0) {
    statistics<true><<<grid, kThreads, 0, stream>>>(x, parts, length);
    normalise<true><<<grid, kThreads, 0, stream>>>(x, gamma, beta, parts, y, eps, length);
  } else {
    statistics<false><<<grid, kThreads, 0, stream>>>(x, parts, length);
    normalise<false><<<grid, kThreads, 0, stream>>>(x, gamma, beta, parts, y, eps, length);
  }
}
