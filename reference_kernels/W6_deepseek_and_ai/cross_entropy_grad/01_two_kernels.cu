// Rung 1: two kernels, the loss and then its gradient.
//
// Changed     nothing yet: the third rung of cross_entropy, a block a row and one read of 16 bytes a load,
//             which keeps the logarithm of the sum in the workspace. A second kernel reads the logits again
//             and writes the gradient over them.
// Why         the definition: the sum of a row must be complete before the first gradient.
// Prediction  two reads and a write: 6 bytes an element, 786 MB, 268 us at the speed of a copy (H100), and 5
//             us for the end of one kernel and the start of the next.
// Came        266 us on an H100, 1974 GB/s: as predicted.
//
// Shapes      logits [rows, vocab], bf16; target [rows]; loss [rows], fp32; any rows, any vocab.
// Launch      twice <<<rows, 256>>>.
// Resources   at most 64 registers; 64 bytes of shared memory; workspace 4 bytes a row.
// Cost        12 * rows * vocab FLOPs; 6 * rows * vocab bytes.
// Divides     no divisibility is required. A row has a head of at most seven elements before its first whole
//             vector and a tail of at most seven.
// Source      cross_entropy, rung 3.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kLoads = 4;  // vectors a thread has in flight
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.69314718055994531f;
constexpr float kNothing = -1e38f;         // the maximum of nothing; times log2(e) still finite
constexpr unsigned kNoPair = 0xff80ff80u;  // twice -infinity

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// sum = Σ exp(x - maximum) over the elements seen.
struct Running {
  float maximum = kNothing, sum = 0;

  /// Makes room for elements up to `x`. Returns what is subtracted from the exponents of two.
  __device__ float grow_to(float x) {
    const float larger = fmaxf(maximum, x);
    sum *= power_of_two((maximum - larger) * kLog2E);
    maximum = larger;
    return larger * kLog2E;
  }
  __device__ void add(float x) {
    const float offset = grow_to(x);
    sum += power_of_two(fmaf(x, kLog2E, -offset));
  }
};

/// Merges the pairs of all lanes; every lane gets the result.
__device__ Running warp_merge(Running mine) {
  float maximum = mine.maximum;
  for (int offset = 16; offset > 0; offset /= 2)
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, offset));
  mine.grow_to(maximum);
  for (int offset = 16; offset > 0; offset /= 2) mine.sum += __shfl_xor_sync(0xffffffffu, mine.sum, offset);
  return mine;
}

/// Merges the pairs of all threads of the block; every thread gets the result.
__device__ Running block_merge(Running mine) {
  __shared__ float maxima[kWarps], sums[kWarps];
  mine = warp_merge(mine);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) maxima[warp] = mine.maximum, sums[warp] = mine.sum;
  __syncthreads();
  Running theirs;
  if (lane < kWarps) theirs.maximum = maxima[lane], theirs.sum = sums[lane];
  return warp_merge(theirs);
}

/// A row: at most seven elements, whole vectors of eight, at most seven elements.
struct Row {
  int64_t start;
  int head, vectors, vocab;

  __device__ Row(int64_t row, int columns)
      : start(row * columns),
        head(min(static_cast<int>(-start & 7), columns)),
        vectors((columns - head) / 8),
        vocab(columns) {}
  __device__ int tail() const { return head + vectors * 8; }
};

__global__ void __launch_bounds__(kThreads, 4)
    losses(const __nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
           float* __restrict__ loss, float* __restrict__ log2_sums, int vocab) {
  const Row r(blockIdx.x, vocab);
  const __nv_bfloat16* row = logits + r.start;
  const uint4* body = reinterpret_cast<const uint4*>(row + r.head);
  const int chosen = threadIdx.x == 0 ? target[blockIdx.x] : -1;  // comes while the row is read

  Running running;
  for (int first = threadIdx.x; first < r.vectors; first += kLoads * kThreads) {
    unsigned word[kLoads * 4];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      uint4 v = make_uint4(kNoPair, kNoPair, kNoPair, kNoPair);
      if (first + k * kThreads < r.vectors) v = body[first + k * kThreads];
      word[k * 4] = v.x, word[k * 4 + 1] = v.y, word[k * 4 + 2] = v.z, word[k * 4 + 3] = v.w;
    }
    float largest = kNothing;
#pragma unroll
    for (int k = 0; k < kLoads * 4; ++k) largest = fmaxf(largest, fmaxf(low(word[k]), high(word[k])));
    const float offset = running.grow_to(largest);
    float sum[2] = {0, 0};
#pragma unroll
    for (int k = 0; k < kLoads * 4; ++k) {
      sum[0] += power_of_two(fmaf(low(word[k]), kLog2E, -offset));
      sum[1] += power_of_two(fmaf(high(word[k]), kLog2E, -offset));
    }
    running.sum += sum[0] + sum[1];
  }
  const int i = threadIdx.x;
  if (i < r.head) running.add(__bfloat162float(row[i]));
  if (i < vocab - r.tail()) running.add(__bfloat162float(row[r.tail() + i]));
  const bool counts = chosen >= 0 && chosen < vocab;
  const float picked = counts ? __bfloat162float(row[chosen]) : 0.0f;
  running = block_merge(running);

  if (threadIdx.x != 0) return;
  const float exponent = running.maximum * kLog2E + log2f(running.sum);
  log2_sums[blockIdx.x] = exponent;
  loss[blockIdx.x] = counts ? running.maximum + kLn2 * log2f(running.sum) - picked : 0.0f;
}

__global__ void __launch_bounds__(kThreads)
    gradients(__nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
              const float* __restrict__ log2_sums, int vocab) {
  const Row r(blockIdx.x, vocab);
  __nv_bfloat16* row = logits + r.start;
  uint4* body = reinterpret_cast<uint4*>(row + r.head);
  const int chosen = target[blockIdx.x];
  const bool counts = chosen >= 0 && chosen < vocab;
  const float exponent = log2_sums[blockIdx.x];
  const auto gradient = [&](float x, int column) {
    return counts ? power_of_two(fmaf(x, kLog2E, -exponent)) - (column == chosen ? 1.0f : 0.0f) : 0.0f;
  };
  for (int first = threadIdx.x; first < r.vectors; first += kThreads) {
    const uint4 v = body[first];
    unsigned word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int column = r.head + first * 8 + 2 * w;
      const __nv_bfloat162 pair =
          __floats2bfloat162_rn(gradient(low(word[w]), column), gradient(high(word[w]), column + 1));
      word[w] = reinterpret_cast<const unsigned&>(pair);
    }
    body[first] = make_uint4(word[0], word[1], word[2], word[3]);
  }
  const int i = threadIdx.x, behind = r.tail() + i;
  if (i < r.head) row[i] = __float2bfloat16(gradient(__bfloat162float(row[i]), i));
  if (behind < vocab) row[behind] = __float2bfloat16(gradient(__bfloat162float(row[behind]), behind));
}

extern "C" size_t workspace_bytes(int64_t rows, int64_t /*vocab*/) {
  return static_cast<size_t>(rows) * sizeof(float);
}

extern "C" void launch(__nv_bfloat16* logits /*[rows,vocab]*/, const int32_t* target /*[rows]*/,
                       float* loss /*[rows]*/, int64_t rows, int64_t vocab, void* workspace,
                       cudaStream_t stream) {
  float* const log2_sums = static_cast<float*>(workspace);
  const unsigned blocks = static_cast<unsigned>(rows);
  const int columns = static_cast<int>(vocab);
  losses<<<blocks, kThreads, 0, stream>>>(logits, target, loss, log2_sums, columns);
  gradients<<<blocks, kThreads, 0, stream>>>(logits, target, log2_sums, columns);
}
