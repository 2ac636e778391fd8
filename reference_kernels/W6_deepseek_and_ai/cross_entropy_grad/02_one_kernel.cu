// Rung 2: one kernel; the second read of a row follows the first at once.
//
// Changed     the block that has summed a row goes over it again and writes the gradient. No workspace.
// Why         in rung 1 the whole matrix lies between the two reads of a row, 262 MB, far more than the L2
//             cache holds. Here it is what the blocks in work have read: four rows a multiprocessor, 34 MB.
// Prediction  if every second read hits the 50 MB of L2: 179 us. The cache is two halves, and the rows'
//             gradients go through it as well, so some will miss: 200 to 230 us. At 128 256 classes it is
//             135 MB, and the second read comes from memory again.
// Came        185 us on an H100, 96 % of a copy: nearly every second read hits. At 128 256 classes a
//             benchmark of its own took 1042 us, 2.0 TB/s: there it does not.
//
// Shapes      logits [rows, vocab], bf16; target [rows]; loss [rows], fp32; any rows, any vocab.
// Launch      <<<rows, 512>>>.
// Resources   at most 32 registers (four blocks a multiprocessor); 128 bytes of shared memory.
// Cost        12 * rows * vocab FLOPs; 4 * rows * vocab bytes, and as many again from L2.
// Divides     no divisibility is required; head and tail as in rung 1.
// Source      the same fusion as in Liger's Triton kernel.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kLoads = 2;  // vectors a thread has in flight
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

__global__ void __launch_bounds__(kThreads, 4)
    loss_and_gradient(__nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
                      float* __restrict__ loss, int vocab) {
  const int64_t start = static_cast<int64_t>(blockIdx.x) * vocab;
  __nv_bfloat16* row = logits + start;
  const int head = min(static_cast<int>(-start & 7), vocab), vectors = (vocab - head) / 8;
  const int tail = head + vectors * 8, i = threadIdx.x, behind = tail + i;
  uint4* body = reinterpret_cast<uint4*>(row + head);
  const int chosen = target[blockIdx.x];
  const bool counts = chosen >= 0 && chosen < vocab;
  const float picked = counts && i == 0 ? __bfloat162float(row[chosen]) : 0.0f;

  Running running;
  for (int first = i; first < vectors; first += kLoads * kThreads) {
    unsigned word[kLoads * 4];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      uint4 v = make_uint4(kNoPair, kNoPair, kNoPair, kNoPair);
      if (first + k * kThreads < vectors) v = body[first + k * kThreads];
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
  if (i < head) running.add(__bfloat162float(row[i]));
  if (behind < vocab) running.add(__bfloat162float(row[behind]));
  running = block_merge(running);  // behind its barrier every thread has read what it reads of the row
  if (i == 0) loss[blockIdx.x] = counts ? running.maximum + kLn2 * log2f(running.sum) - picked : 0.0f;

  const float exponent = running.maximum * kLog2E + log2f(running.sum);
  const auto gradient = [&](float x, int column) {
    return counts ? power_of_two(fmaf(x, kLog2E, -exponent)) - (column == chosen ? 1.0f : 0.0f) : 0.0f;
  };
  for (int at = i; at < vectors; at += kThreads) {
    const uint4 v = body[at];  // from the L2 cache, if it is still there
    unsigned word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int column = head + at * 8 + 2 * w;
      const __nv_bfloat162 pair =
          __floats2bfloat162_rn(gradient(low(word[w]), column), gradient(high(word[w]), column + 1));
      word[w] = reinterpret_cast<const unsigned&>(pair);
    }
    __stcs(body + at, make_uint4(word[0], word[1], word[2], word[3]));  // not read again: evict first
  }
  if (i < head) row[i] = __float2bfloat16(gradient(__bfloat162float(row[i]), i));
  if (behind < vocab) row[behind] = __float2bfloat16(gradient(__bfloat162float(row[behind]), behind));
}

extern "C" void launch(__nv_bfloat16* logits /*[rows,vocab]*/, const int32_t* target /*[rows]*/,
                       float* loss /*[rows]*/, int64_t rows, int64_t vocab, void* /*workspace*/,
                       cudaStream_t stream) {
  loss_and_gradient<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(logits, target, loss,
                                                                          static_cast<int>(vocab));
}
