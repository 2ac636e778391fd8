// Rung 4: x is read once: all multiprocessors together hold a sample in shared memory.
//
// Changed     one kernel whose blocks stay. Each warp owns the same 497 vectors of every sample. They
//             come by bulk copies into a ring of its own, 13 chunks of 1 KB; a sample has 8, so a part of
//             the next sample is on its way while the GPU agrees on the mean of this one. Each block
//             publishes mean and squares in one word, and each warp reads the words of all blocks. Gamma
//             stays in registers for all samples; beta comes from L2.
// Why         16.8 MB of a sample are 127 KB for each of 132 multiprocessors, which have 227 KB of shared
//             memory and 256 KB of registers. So the second read of rung 3 is not needed.
// Prediction  x and y once, parameters once from memory: 0.57 GB, 142 us at 4 TB/s; 17 waits for the
//             slowest block at 1 to 2 us, half of them hidden: 160 us. 1.25x rung 3.
// Came        482 us on an H100, 1185 GB/s, 0.64 times the rung before. 284 % of the native baseline.
//
// Shapes      x, y [n, c, h, w]; gamma, beta [c, h, w]; any sizes.
// Launch      <<<blocks that fit at once, 512>>> behind a memset. All blocks must run at once, so no
//             other program may use the GPU.
// Resources   at most 128 registers, 64 of them gamma; one block per multiprocessor; 208 KB of shared
//             memory; 8 bytes of workspace for each sample and block.
// Cost        8 n c h w FLOPs; 8 n c h w + 8 c h w bytes.
// Divides     c * h * w % 4 == 0, and at most 64 elements for each thread of the GPU; other shapes take
//             the last two kernels, which read x twice.
// Source      this project. Bulk copies and mbarriers need a GPU of compute capability 9.0. The merge: T.
//             Chan, G. Golub and R. LeVeque, 1979.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kVectors = 16;                // float4 of a sample that a thread owns
constexpr int kLoads = 2;                   // of them in a chunk
constexpr int kChunk = kLoads * 32;         // vectors of a warp that come with one copy
constexpr int kAhead = 6;                   // vectors of beta on their way
constexpr int kChunks = kVectors / kLoads;  // of a sample
constexpr int kStages = 13;                 // chunks of a warp in shared memory
constexpr int kSharedBytes = kWarps * kStages * kChunk * 16;
constexpr int64_t kMostBlocks = 256;
constexpr int64_t kPart = 16384;  // elements a block of the fallback has

// ---- moments ----------------------------------------------------------------------------------------------
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

/// The moments of the values that one thread sees, from sums about the first of them.
struct Sums {
  float shift = 0, sum = 0, squares = 0, count = 0;

  __device__ void add(float v) {
    if (count == 0) shift = v;
    const float d = v - shift;
    sum += d, squares += d * d, count += 1;
  }
  __device__ void add(float4 v) { add(v.x), add(v.y), add(v.z), add(v.w); }
  __device__ Moments moments() const {
    if (count == 0) return {0, 0, 0};
    const float mean = sum / count;
    return {count, shift + mean, fmaxf(squares - sum * mean, 0.0f)};
  }
};

// ---- words between blocks ---------------------------------------------------------------------------------
/// Mean and squares of a block's part of a sample, in one word that cannot be torn. All ones: not yet there.
using Word = unsigned long long;
constexpr Word kNothing = ~Word{0};

__device__ void publish(Word* at, Moments m) {
  const Word word = Word{__float_as_uint(m.mean)} << 32 | __float_as_uint(m.squares);
  *static_cast<volatile Word*>(at) =
      word == kNothing ? kNothing >> 1 : word;  // some NaN are all ones: take another
}
__device__ Word wait_for_word(const Word* at) {
  Word word;
  do word = *static_cast<const volatile Word*>(at);
  while (word == kNothing);
  return word;
}

// ---- bulk copies ------------------------------------------------------------------------------------------
__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
using Arrival = unsigned long long;  // an mbarrier
__device__ void expect_one_copy(Arrival* at) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(at)) : "memory");
}
/// Starts a copy of `bytes`, a multiple of 16; `at` says when it has arrived. The L2 cache gives it up first.
__device__ void copy_bulk(void* to, const void* from, unsigned bytes, Arrival* at) {
  asm volatile(
      "{\n"
      ".reg .b64 policy;\n"
      "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%3], %2;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], policy;\n"
      "}\n" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(at))
      : "memory");
}
/// Waits until the copies of a phase are there; phases are counted modulo 2.
__device__ void wait_for(Arrival* at, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred there;\n"
      "WAITING:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
      "@there bra.uni THERE;\n"
      "bra.uni WAITING;\n"
      "THERE:\n"
      "}\n" ::"r"(shared_address(at)),
      "r"(parity)
      : "memory");
}

/// A place in a warp's ring.
struct Place {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

/// The vectors of a sample that belong to one warp: the same ones in every sample.
struct Share {
  int64_t first;
  int count;
  __device__ Share(int64_t warp, int64_t warps, int64_t vectors)
      : first(vectors * warp / warps), count(static_cast<int>(vectors * (warp + 1) / warps - first)) {}
};

__global__ void __launch_bounds__(kThreads, 1)
    layernorm_held(const float4* __restrict__ x, const float4* __restrict__ gamma,
                   const float4* __restrict__ beta, float4* __restrict__ y, Word* words, float eps, int n,
                   int64_t vectors) {
  extern __shared__ float4 rings[];
  __shared__ Arrival arrivals[kWarps][kStages];
  __shared__ Moments partial[2][kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = static_cast<int>(gridDim.x);
  const int64_t warps = int64_t{blocks} * kWarps;
  const Share share(int64_t{blockIdx.x} * kWarps + warp, warps, vectors);
  const int chunks = (share.count + kChunk - 1) / kChunk;
  float4* const ring = rings + warp * kStages * kChunk;

  if (lane == 0)
    for (int i = 0; i < kStages; ++i) expect_one_copy(&arrivals[warp][i]);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncwarp();

  int ahead_sample = 0, ahead_chunk = 0;  // what lane 0 asks for next
  Place ahead;
  const auto ask = [&] {
    if (ahead_sample == n || chunks == 0) return;
    const int from = ahead_chunk * kChunk, there = min(kChunk, share.count - from);
    if (lane == 0)
      copy_bulk(ring + ahead.stage * kChunk, x + ahead_sample * vectors + share.first + from, there * 16,
                &arrivals[warp][ahead.stage]);
    ahead.advance();
    if (++ahead_chunk == chunks) ahead_chunk = 0, ++ahead_sample;
  };
  for (int i = 0; i < kStages; ++i) ask();

  float4 g[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    g[k] = k * 32 + lane < share.count ? gamma[share.first + k * 32 + lane] : make_float4(0, 0, 0, 0);

  Place place;
#pragma unroll 1
  for (int s = 0; s < n; ++s) {
    Sums sums;
    const Place begin = place;
    for (int c = 0; c < chunks; ++c, place.advance()) {
      wait_for(&arrivals[warp][place.stage], place.parity);
#pragma unroll
      for (int k = 0; k < kLoads; ++k)
        if (c * kChunk + k * 32 + lane < share.count) sums.add(ring[place.stage * kChunk + k * 32 + lane]);
    }
    Moments mine = warp_merge(sums.moments());
    float4 b[kAhead];  // beta of the first vectors comes while the GPU agrees on the mean
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      b[k] = k * 32 + lane < share.count ? beta[share.first + k * 32 + lane] : make_float4(0, 0, 0, 0);
    if (lane == 0) partial[s % 2][warp] = mine;
    __syncthreads();
    if (warp == 0) {
      mine = warp_merge(lane < kWarps ? partial[s % 2][lane] : Moments{0, 0, 0});
      if (lane == 0) publish(words + int64_t{s} * blocks + blockIdx.x, mine);
    }
    mine = {0, 0, 0};
    for (int b = lane; b < blocks; b += 32) {
      const Word word = wait_for_word(words + int64_t{s} * blocks + b);
      const int64_t count =
          vectors * (int64_t{b} + 1) * kWarps / warps - vectors * int64_t{b} * kWarps / warps;
      mine = merged(mine, {4 * static_cast<float>(count), __uint_as_float(static_cast<unsigned>(word >> 32)),
                           __uint_as_float(static_cast<unsigned>(word))});
    }
    mine = warp_merge(mine);
    const float mean = mine.mean, inverse = rsqrtf(mine.squares / (4 * static_cast<float>(vectors)) + eps);

    place = begin;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c >= chunks) continue;
#pragma unroll
      for (int k = 0; k < kLoads; ++k) {
        const int i = c * kChunk + k * 32 + lane;
        if (i >= share.count) continue;
        const float4 v = ring[place.stage * kChunk + k * 32 + lane], of = g[c * kLoads + k];
        const float4 shift = b[(c * kLoads + k) % kAhead];
        if (c * kLoads + k + kAhead < kVectors && i + kAhead * 32 < share.count)
          b[(c * kLoads + k) % kAhead] = beta[share.first + i + kAhead * 32];
        __stcs(y + s * vectors + share.first + i,
               make_float4((v.x - mean) * inverse * of.x + shift.x, (v.y - mean) * inverse * of.y + shift.y,
                           (v.z - mean) * inverse * of.z + shift.z, (v.w - mean) * inverse * of.w + shift.w));
      }
      __syncwarp();  // all lanes have taken what lay there
      ask();
      place.advance();
    }
  }
}

// ---- any shape: two kernels, element by element
// -------------------------------------------------------------
__global__ void __launch_bounds__(kThreads) statistics(const float* x, Moments* parts, int64_t length) {
  __shared__ Moments partial[kWarps];
  const int64_t first = blockIdx.y * kPart, last = min(first + kPart, length);
  Sums sums;
  for (int64_t i = first + threadIdx.x; i < last; i += kThreads) sums.add(x[blockIdx.x * length + i]);
  const Moments mine = warp_merge(sums.moments());
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const Moments all = warp_merge(threadIdx.x < kWarps ? partial[threadIdx.x] : Moments{0, 0, 0});
  if (threadIdx.x == 0) parts[int64_t{blockIdx.x} * gridDim.y + blockIdx.y] = all;
}

__global__ void __launch_bounds__(kThreads)
    normalise(const float* x, const float* gamma, const float* beta, const Moments* parts, float* y,
              float eps, int64_t length) {
  Moments all{0, 0, 0};
  for (unsigned p = threadIdx.x % 32; p < gridDim.y; p += 32)
    all = merged(all, parts[int64_t{blockIdx.x} * gridDim.y + p]);
  all = warp_merge(all);
  const float inverse = rsqrtf(all.squares / static_cast<float>(length) + eps);
  const int64_t first = blockIdx.y * kPart, last = min(first + kPart, length), start = blockIdx.x * length;
  for (int64_t i = first + threadIdx.x; i < last; i += kThreads)
    y[start + i] = (x[start + i] - all.mean) * inverse * gamma[i] + beta[i];
}

int64_t parts_of(int64_t length) { return (length + kPart - 1) / kPart; }

extern "C" size_t workspace_bytes(int64_t n, int64_t c, int64_t h, int64_t w) {
  return static_cast<size_t>(n) * std::max(static_cast<size_t>(kMostBlocks) * sizeof(Word),
                                           static_cast<size_t>(parts_of(c * h * w)) * sizeof(Moments));
}

extern "C" void launch(const float* x /*[n,c,h,w]*/, const float* gamma /*[c,h,w]*/,
                       const float* beta /*[c,h,w]*/, float* y /*[n,c,h,w]*/, float eps, int64_t n, int64_t c,
                       int64_t h, int64_t w, void* workspace, cudaStream_t stream) {
  const int64_t length = c * h * w, vectors = length / 4;
  int device = 0, processors = 0, resident = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(layernorm_held, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, layernorm_held, kThreads, kSharedBytes);
  const int64_t most = std::min<int64_t>(int64_t{processors} * resident, kMostBlocks);
  const int64_t blocks = std::min(most, (vectors + kThreads - 1) / kThreads);
  if (length % 4 == 0 && vectors <= blocks * kWarps * (kVectors * 32 - 1)) {
    Word* const words = static_cast<Word*>(workspace);
    cudaMemsetAsync(words, 0xff, static_cast<size_t>(n * blocks) * sizeof(Word), stream);
    const auto in_vectors = [](const float* p) { return reinterpret_cast<const float4*>(p); };
    layernorm_held<<<static_cast<unsigned>(blocks), kThreads, kSharedBytes, stream>>>(
        in_vectors(x), in_vectors(gamma), in_vectors(beta), reinterpret_cast<float4*>(y), words, eps,
        static_cast<int>(n), vectors);
    return;
  }
  Moments* const parts = static_cast<Moments*>(workspace);
  const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(parts_of(length)));
  statistics<<<grid, kThreads, 0, stream>>>(x, parts, length);
  normalise<<<grid, kThreads, 0, stream>>>(x, gamma, beta, parts, y, eps, length);
}
