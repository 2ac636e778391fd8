// Rung 3: 16 bytes a load, four loads in flight, one rescaling for 32 elements.
//
// Changed     a thread loads four vectors of eight logits before it uses the first. It takes the maximum of
//             all 32, rescales its sum once, and adds 32 powers of two. The factor log2(e) is folded into one
//             FMA: exp(x - m) = 2^(x * log2e - m * log2e).
// Why         rung 2 has 2 bytes in flight for each thread, and two exponentials in a chain for each
//             element. Here a thread has 64 bytes in flight: 64 KB a multiprocessor, where 33 KB are needed.
// Prediction  131 million exponentials at 16 a clock and multiprocessor take 35 us, the bytes 61 us. They
//             overlap, but a block has nothing in flight at the end of its row, and the last wave of blocks
//             is not full: 75 us, 80 % of a copy.
// Came        64.9 us, 97 % of a copy: better than predicted.
//
// Shapes      logits [rows, vocab], bf16; target [rows]; loss, lse [rows], fp32; any rows, any vocab.
// Launch      <<<rows, 256>>>.
// Resources   at most 64 registers (four blocks a multiprocessor); 64 bytes of shared memory.
// Cost        7 * rows * vocab FLOPs; 2 * rows * vocab bytes.
// Divides     no divisibility is required. A row that begins inside an aligned vector has a head of at most
//             seven elements before its first whole vector; every row has a tail of at most seven.
// Source      vectorised access as in the CUDA C++ Best Practices Guide; exp2 with a folded factor as in
//             FlashAttention-2 (T. Dao, 2023).
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kLoads = 4;                  // vectors a thread has in flight
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
    cross_entropy(const __nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
                  float* __restrict__ loss, float* __restrict__ lse, int vocab) {
  const int64_t start = static_cast<int64_t>(blockIdx.x) * vocab;
  const __nv_bfloat16* row = logits + start;
  const int head = min(static_cast<int>(-start & 7), vocab), vectors = (vocab - head) / 8;
  const uint4* body = reinterpret_cast<const uint4*>(row + head);

  const int chosen = threadIdx.x == 0 ? target[blockIdx.x] : -1;  // comes while the row is read

  Running running;
  for (int first = threadIdx.x; first < vectors; first += kLoads * kThreads) {
    unsigned word[kLoads * 4];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      uint4 v = make_uint4(kNoPair, kNoPair, kNoPair, kNoPair);
      if (first + k * kThreads < vectors) v = __ldcs(body + first + k * kThreads);  // read once: evict first
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
  const int tail = head + vectors * 8, i = threadIdx.x;
  if (i < head) running.add(__bfloat162float(row[i]));
  if (i < vocab - tail) running.add(__bfloat162float(row[tail + i]));
  const bool counts = chosen >= 0 && chosen < vocab;
  const float picked = counts ? __bfloat162float(row[chosen]) : 0.0f;  // comes while the pairs are merged
  running = block_merge(running);

  if (threadIdx.x != 0) return;
  const float total = running.maximum + kLn2 * log2f(running.sum);
  lse[blockIdx.x] = total;
  loss[blockIdx.x] = counts ? total - picked : 0.0f;
}

extern "C" void launch(const __nv_bfloat16* logits /*[rows,vocab]*/, const int32_t* target /*[rows]*/,
                       float* loss /*[rows]*/, float* lse /*[rows]*/, int64_t rows, int64_t vocab,
                       void* /*workspace*/, cudaStream_t stream) {
  cross_entropy<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(logits, target, loss, lse,
                                                                      static_cast<int>(vocab));
}
