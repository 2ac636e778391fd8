// Rung 2: nothing is sorted. Bisection finds the smallest probability that is kept.
//
// Changed     a row is kept down to some probability. Whether a guess is low enough is a sum: do the tokens
//             at or above it have enough mass, or are they k already? Positive floats order as their bits
//             do, so 31 guesses find the last bit. Of the tokens equal to it the first ones are kept. Two
//             more passes find the token: in which thread's part of the kept mass the target lies, and where
//             in it.
// Why         rung 1 moves 1 MB of keys 153 times to learn where one prefix ends.
// Prediction  34 passes over 513 KB, which stay in L2. One multiprocessor reads about 60 GB/s of L2 per GHz:
//             8 us a pass, 64 rows at once on 64 multiprocessors: 280 us.
// Came        429 us on an H100, 77 GB/s, 20.61 times the rung before. 23 % of the native baseline.
//
// Shapes      probs [b, v], top_p, top_k, u [b], token [b].
// Launch      <<<b, 1024>>>.
// Resources   shared memory for a few sums; no workspace.
// Cost        34 reads of a row, of which one from memory.
// Divides     nothing.
// Source      FlashInfer's sampling without sorting uses pivots in this way.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 1024, kWarps = kThreads / 32;
constexpr unsigned kAllLanes = 0xffffffffu;

/// A probability in units of 2^-31. The weights of a row sum to less than 2^32.
__device__ unsigned weight(float p) { return static_cast<unsigned>(p * 0x1p31f); }

/// Sums of the block: a mass and a count.
struct Sums {
  unsigned mass, count;
};
__device__ Sums block_sum(Sums own) {
  __shared__ Sums of_warp[kWarps], all;
  for (int offset = 16; offset > 0; offset /= 2) {
    own.mass += __shfl_xor_sync(kAllLanes, own.mass, offset);
    own.count += __shfl_xor_sync(kAllLanes, own.count, offset);
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();  // the sums of all warps
  if (threadIdx.x < 32) {
    own = of_warp[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2) {
      own.mass += __shfl_xor_sync(kAllLanes, own.mass, offset);
      own.count += __shfl_xor_sync(kAllLanes, own.count, offset);
    }
    if (threadIdx.x == 0) all = own;
  }
  __syncthreads();  // the sum of the block
  own = all;
  return own;
}

/// The sum over all earlier threads of the block.
__device__ unsigned sum_before(unsigned value) {
  __shared__ unsigned of_warp[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned inclusive = value;
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned below = __shfl_up_sync(kAllLanes, inclusive, offset);
    if (lane >= offset) inclusive += below;
  }
  __syncthreads();  // of_warp is free
  if (lane == 31) of_warp[warp] = inclusive;
  __syncthreads();  // the sums of all warps
  unsigned before = inclusive - value;
  for (int w = 0; w < warp; ++w) before += of_warp[w];
  return before;
}

/// Tokens with positive weight whose probability has at least these bits.
__device__ Sums at_least(const float* row, int64_t v, unsigned bits) {
  Sums own{0, 0};
  for (int64_t i = threadIdx.x; i < v; i += kThreads) {
    const float p = row[i];
    const unsigned w = weight(p);
    if (w > 0 && __float_as_uint(p) >= bits) own.mass += w, ++own.count;
  }
  return block_sum(own);
}

__global__ void __launch_bounds__(kThreads)
    sample(const float* __restrict__ probs, const float* __restrict__ top_p, const int* __restrict__ top_k,
           const float* __restrict__ u, int* __restrict__ token, int64_t v) {
  const float* row = probs + blockIdx.x * v;
  const Sums all = at_least(row, v, 0);
  const auto part = static_cast<unsigned>(top_p[blockIdx.x] * 0x1p24f);
  const auto need =
      static_cast<unsigned>((static_cast<unsigned long long>(part) * all.mass + 0xffffffu) >> 24);
  const unsigned most = min(static_cast<unsigned>(top_k[blockIdx.x]), all.count);

  // The largest bits such that the tokens at or above them suffice.
  unsigned low = 0, high = 0x7f800000u;  // low suffices, high does not
  while (high - low > 1) {
    const unsigned middle = low + (high - low) / 2;
    const Sums kept = at_least(row, v, middle);
    (kept.count > 0 && (kept.mass >= need || kept.count >= most) ? low : high) = middle;
  }
  const Sums larger = at_least(row, v, low + 1);
  const unsigned own = weight(__uint_as_float(low));  // of each token equal to the smallest that is kept
  unsigned equal = own == 0 || need <= larger.mass ? 1 : (need - larger.mass + own - 1) / own;
  equal = min(max(equal, 1u), most - larger.count);
  const unsigned kept_mass = larger.mass + equal * own;
  const auto target =
      static_cast<unsigned>((static_cast<unsigned long long>(u[blockIdx.x] * 0x1p24f) * kept_mass) >> 24);

  // A thread owns neighbouring tokens here, so that parts follow in the order of the tokens.
  const int64_t share = (v + kThreads - 1) / kThreads, first = threadIdx.x * share,
                end = min(first + share, v);
  unsigned equals = 0;
  for (int64_t i = first; i < end; ++i) equals += __float_as_uint(row[i]) == low;
  const unsigned equals_before = sum_before(equals);
  const auto kept = [&](float p, unsigned equals_so_far) {
    const unsigned bits = __float_as_uint(p);
    return bits > low || (bits == low && equals_so_far < equal) ? weight(p) : 0;
  };
  unsigned mass = 0, seen = equals_before;
  for (int64_t i = first; i < end; ++i) {
    mass += kept(row[i], seen);
    seen += __float_as_uint(row[i]) == low;
  }
  unsigned before = sum_before(mass);
  if (target < before || target - before >= mass) return;
  seen = equals_before;
  for (int64_t i = first; i < end; ++i) {
    const unsigned w = kept(row[i], seen);
    if (target - before < w) {
      token[blockIdx.x] = static_cast<int>(i);
      return;
    }
    before += w;
    seen += __float_as_uint(row[i]) == low;
  }
}

extern "C" void launch(const float* probs /*[b,v]*/, const float* top_p /*[b]*/, const int32_t* top_k /*[b]*/,
                       const float* u /*[b]*/, int32_t* token /*[b]*/, int64_t b, int64_t v,
                       void* /*workspace*/, cudaStream_t stream) {
  sample<<<static_cast<unsigned>(b), kThreads, 0, stream>>>(probs, top_p, top_k, u, token, v);
}
