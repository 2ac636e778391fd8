// Rung 3: a block has the same elements of all samples: gamma and beta are read once, and backwards.
//
// Changed     a thread of the second kernel keeps four values of gamma and of beta in registers and uses
//             them for 16 samples. The first kernel goes through the elements forwards, all samples of
//             one part before the next part; the second goes backwards.
// Why         rung 2 reads 33 MB of parameters 16 times: as much as x and y together, although from L2 in
//             part. And what the first kernel has read last is still in the L2 cache (50 MB of 268): the
//             second begins there.
// Prediction  2 x 268 MB of x, less 30 MB that L2 still has, 268 MB of y, 34 MB of parameters: 0.81 GB,
//             200 us at 4.1 TB/s. 1.3x rung 2.
// Came        308 us on an H100, 1855 GB/s, 1.08 times the rung before. 444 % of the native baseline.
//
// Shapes      x, y [n, c, h, w]; gamma, beta [c, h, w]; any sizes.
// Launch      <<<(n, parts), 256>>>, then <<<(parts, groups of 16 samples), 256>>>.
// Resources   about 60 registers; 128 bytes of shared memory; 12 bytes of workspace for each part.
// Cost        8 n c h w FLOPs; x is read twice.
// Divides     c * h * w % 4 == 0 for 16-byte accesses; other shapes take the same kernels with scalars.
// Source      the merge: T. Chan, G. Golub and R. LeVeque, 1979. The backward second pass is an old habit
//             with caches that keep what was used last.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int64_t kPart = 16384;  // elements of a sample that a block has
constexpr int kSamples = 16;      // that a block normalises
constexpr int kAtOnce = 8;        // loads of a thread on their way

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
  __device__ Part(int64_t part, int64_t length) : first(part * kPart), last(min(first + kPart, length)) {}
};

template <bool kVector>
__global__ void __launch_bounds__(kThreads)
    statistics(const float* __restrict__ x, Moments* __restrict__ parts, int64_t length) {
  __shared__ Moments partial[kWarps];
  const Part part(blockIdx.y, length);
  const float* sample = x + blockIdx.x * length;
  Sums sums;
  if constexpr (kVector) {
#pragma unroll 8
    for (int64_t i = part.first / 4 + threadIdx.x; i < part.last / 4; i += kThreads) {
      const float4 v = reinterpret_cast<const float4*>(sample)[i];
      sums.add(v.x), sums.add(v.y), sums.add(v.z), sums.add(v.w);
    }
  } else {
    for (int64_t i = part.first + threadIdx.x; i < part.last; i += kThreads) sums.add(sample[i]);
  }
  const Moments all = block_merge(sums.moments(), partial);
  if (threadIdx.x == 0) parts[int64_t{blockIdx.x} * gridDim.y + blockIdx.y] = all;
}

/// Two numbers that make a value of x a normalised one.
struct Normal {
  float mean, inverse;
  __device__ float operator()(float v, float g, float b) const { return (v - mean) * inverse * g + b; }
};

template <bool kVector>
__global__ void __launch_bounds__(kThreads)
    normalise(const float* __restrict__ x, const float* __restrict__ gamma, const float* __restrict__ beta,
              const Moments* __restrict__ parts, float* __restrict__ y, float eps, int n, int64_t length) {
  __shared__ Normal normals[kSamples];
  const int sample0 = static_cast<int>(blockIdx.y) * kSamples, samples = min(kSamples, n - sample0);
  for (int s = static_cast<int>(threadIdx.x) / 32; s < samples; s += kWarps) {  // a warp a sample
    const Moments* those = parts + (sample0 + s) * int64_t{gridDim.x};
    Moments mine{0, 0, 0};
    for (unsigned p = threadIdx.x % 32; p < gridDim.x; p += 32) mine = merged(mine, those[p]);
    mine = warp_merge(mine);
    if (threadIdx.x % 32 == 0)
      normals[s] = {mine.mean, rsqrtf(mine.squares / static_cast<float>(length) + eps)};
  }
  __syncthreads();

  const Part part(gridDim.x - 1 - blockIdx.x, length);  // the last part first
  x += sample0 * length, y += sample0 * length;
  if constexpr (kVector) {
    for (int64_t i = part.first / 4 + threadIdx.x; i < part.last / 4; i += kThreads) {
      const float4 g = reinterpret_cast<const float4*>(gamma)[i],
                   b = reinterpret_cast<const float4*>(beta)[i];
      for (int first = 0; first < samples; first += kAtOnce) {
        float4 v[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k)
          if (first + k < samples)
            v[k] = __ldcs(reinterpret_cast<const float4*>(x + (first + k) * length) + i);
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          if (first + k >= samples) break;
          const Normal of = normals[first + k];
          __stcs(reinterpret_cast<float4*>(y + (first + k) * length) + i,
                 make_float4(of(v[k].x, g.x, b.x), of(v[k].y, g.y, b.y), of(v[k].z, g.z, b.z),
                             of(v[k].w, g.w, b.w)));
        }
      }
    }
  } else {
    for (int64_t i = part.first + threadIdx.x; i < part.last; i += kThreads)
      for (int s = 0; s < samples; ++s) y[s * length + i] = normals[s](x[s * length + i], gamma[i], beta[i]);
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
  const unsigned count = static_cast<unsigned>(parts_of(length)), samples = static_cast<unsigned>(n);
  const dim3 first(samples, count), second(count, (samples + kSamples - 1) / kSamples);
  if (length % 4 == 0) {
    statistics<true><<<first, kThreads, 0, stream>>>(x, parts, length);
    normalise<true>
        <<<second, kThreads, 0, stream>>>(x, gamma, beta, parts, y, eps, static_cast<int>(n), length);
  } else {
    statistics<false><<<first, kThreads, 0, stream>>>(x, parts, length);
    normalise<false>
        <<<second, kThreads, 0, stream>>>(x, gamma, beta, parts, y, eps, static_cast<int>(n), length);
  }
}
