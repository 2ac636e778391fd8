// Rung 1: a block a sequence, one step after the other.
//
// Changed     nothing before it: one thread walks through the draft; all threads add up the row that it
//             found; one pass more, 256 tokens at a time, finds the one at the target.
// Why         the definition, written down. Only one row of p and one of q are read, so it beats a framework
//             that makes all residuals first.
// Prediction  each accepted token costs three dependent loads, 2 us; then two passes over 517 KB, with loads
//             of 4 bytes and few in flight, on 64 of 132 multiprocessors: 150 us.
// Came        422 us on an H100, 146 GB/s. 10 % of the native baseline.
//
// Shapes      draft [b, gamma], q [b, gamma, v], p [b, gamma + 1, v], u and tokens [b, gamma + 1].
// Launch      <<<b, 256>>>.
// Resources   no workspace.
// Cost        two reads of a row of p and of q for each sequence.
// Divides     nothing.
// Source      Leviathan et al., "Fast inference from transformers via speculative decoding" (2023).
#include <cuda_runtime.h>

#include <cstdint>

using Wide = unsigned long long;
constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr unsigned kAllLanes = 0xffffffffu;

/// A probability in units of 2^-31. The weights of a row sum to less than 2^32.
__device__ unsigned weight(float p) { return static_cast<unsigned>(p * 0x1p31f); }

/// The sum over all earlier threads of the block; `total` becomes the sum over all.
__device__ unsigned sum_before(unsigned value, unsigned* total) {
  __shared__ unsigned of_warp[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned inclusive = value;
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned below = __shfl_up_sync(kAllLanes, inclusive, offset);
    if (lane >= offset) inclusive += below;
  }
  if (lane == 31) of_warp[warp] = inclusive;
  __syncthreads();  // the sums of all warps
  unsigned before = inclusive - value;
  *total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += of_warp[w];
    *total += of_warp[w];
  }
  __syncthreads();  // of_warp may be used again
  return before;
}

__global__ void __launch_bounds__(kThreads)
    verify(const int* __restrict__ draft, const float* __restrict__ q, const float* __restrict__ p,
           const float* __restrict__ u, int* __restrict__ tokens, int64_t gamma, int64_t v) {
  __shared__ int64_t accepted;
  const int64_t sequence = blockIdx.x, width = gamma + 1;
  draft += sequence * gamma, q += sequence * gamma * v, p += sequence * width * v, u += sequence * width,
      tokens += sequence * width;
  if (threadIdx.x == 0) {
    int64_t i = 0;
    for (; i < gamma; ++i) {
      const int64_t at = i * v + draft[i];
      if (!(static_cast<double>(u[i]) * static_cast<double>(q[at]) < static_cast<double>(p[at]))) break;
      tokens[i] = draft[i];
    }
    for (int64_t j = i + 1; j < width; ++j) tokens[j] = -1;
    accepted = i;
  }
  __syncthreads();  // the row is known
  const int64_t at = accepted;
  const float *target_row = p + at * v, *draft_row = q + at * v;
  bool residual = at < gamma;
  const auto weight_of = [&](int64_t j) {
    return weight(residual ? fmaxf(target_row[j] - draft_row[j], 0.0f) : target_row[j]);
  };

  unsigned all = 0;
  for (bool again = true; again;) {
    unsigned own = 0;
    for (int64_t j = threadIdx.x; j < v; j += kThreads) own += weight_of(j);
    sum_before(own, &all);
    again = residual && all == 0;  // p and q agree: p itself
    if (again) residual = false;
  }
  const auto target = static_cast<unsigned>(Wide{static_cast<unsigned>(u[gamma] * 0x1p24f)} * all >> 24);
  unsigned before = 0;
  for (int64_t first = 0; first < v && before <= target; first += kThreads) {
    const int64_t j = first + threadIdx.x;
    unsigned chunk;
    const unsigned w = j < v ? weight_of(j) : 0, start = before + sum_before(w, &chunk);
    if (target >= start && target - start < w) tokens[at] = static_cast<int>(j);
    before += chunk;
  }
}

extern "C" void launch(const int32_t* draft /*[b,gamma]*/, const float* q /*[b,gamma,v]*/,
                       const float* p /*[b,gamma + 1,v]*/, const float* u /*[b,gamma + 1]*/,
                       int32_t* tokens /*[b,gamma + 1]*/, int64_t b, int64_t gamma, int64_t v,
                       void* /*workspace*/, cudaStream_t stream) {
  verify<<<static_cast<unsigned>(b), kThreads, 0, stream>>>(draft, q, p, u, tokens, gamma, v);
}
