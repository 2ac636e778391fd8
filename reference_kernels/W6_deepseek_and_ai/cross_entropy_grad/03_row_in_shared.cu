// Rung 3: the row waits in shared memory, and a long row in that of a cluster.
//
// Changed     bulk copies bring a row to shared memory, each warp its own chunks. The gradient is written
//             there over the logits, and each chunk leaves by a bulk copy of its own. A row of more than 64
//             KB is cut over a cluster of two, four or eight blocks, which tell each other their sums.
// Why         in rung 2 the second read depends on what the L2 cache still has, and at 128 256 classes it
//             has little. Shared memory forgets nothing: one read and one write at any length. And a warp
//             needs no registers for bytes that are on their way.
// Prediction  three blocks a multiprocessor: one loads, one computes, one stores. Two exponentials an
//             element are 119 us at 16 a clock, below the memory's 179 us: 195 us. Blocks start and end 4096
//             / 396 = 10.3 times, so the end is not full.
// Came        184 us on an H100, 97 % of a copy, 1.01 times the rung before; at 128 256 classes 749 us,
//             0.96 times QuACK. There, clusters of eight blocks of 32 KB and 128 threads took 745 us,
//             of two blocks of 112 KB 753 us; hints that evict lines first took 762 us and more.
//
// Shapes      logits [rows, vocab], bf16; target [rows]; loss [rows], fp32; any rows, vocab up to 900 000.
// Launch      <<<cluster * rows, 256>>> in clusters of 1, 2, 4 or 8.
// Resources   54 registers; 64 KB of shared memory for a row of 32000, three blocks a
//             multiprocessor.
// Cost        12 * rows * vocab FLOPs; 4 * rows * vocab bytes.
// Divides     no divisibility is required. Head and tail of a row, at most seven elements each, stay in
//             registers.
// Source      a row in the shared memory of a cluster: QuACK (W. Guo, T. Zadouri, T. Dao, 2025). Needs sm_90.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace cg = cooperative_groups;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kLoads = 4;             // vectors of a lane in a chunk
constexpr int kChunk = kLoads * 32;   // vectors of eight logits: 2 KB
constexpr int kFriendly = 64 * 1024;  // bytes: three blocks fit in a multiprocessor
constexpr int kMostBlocks = 8;        // of a cluster
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
  float maximum, sum;

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

/// The larger of two pairs of bf16, in one instruction.
__device__ unsigned larger_pair(unsigned a, unsigned b) {
  unsigned larger;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}

// ---- bulk copies ------------------------------------------------------------------------------------------
__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
using Arrival = unsigned long long;  // an mbarrier
__device__ void expect_bytes(Arrival* at, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)),
               "r"(bytes)
               : "memory");
}
__device__ void load_bulk(void* to, const void* from, unsigned bytes, Arrival* at) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(at))
      : "memory");
}
__device__ void store_bulk(void* to, const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
/// Waits for the first phase of `at`.
__device__ void wait_for(Arrival* at) {
  asm volatile(
      "{\n"
      ".reg .pred there;\n"
      "WAITING:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], 0;\n"
      "@there bra.uni THERE;\n"
      "bra.uni WAITING;\n"
      "THERE:\n"
      "}\n" ::"r"(shared_address(at))
      : "memory");
}

__global__ void __launch_bounds__(kThreads, 3)
    loss_and_gradient(__nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
                      float* __restrict__ loss, int vocab) {
  extern __shared__ uint4 part[];  // the vectors of the row that are this block's
  __shared__ Arrival arrivals[kWarps];
  __shared__ Running of_warps[kWarps], of_blocks[kMostBlocks];
  const cg::cluster_group cluster = cg::this_cluster();
  const int blocks = static_cast<int>(cluster.num_blocks()), rank = static_cast<int>(cluster.block_rank());
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t which = blockIdx.x / blocks, start = which * vocab;
  __nv_bfloat16* row = logits + start;
  const int head = min(static_cast<int>(-start & 7), vocab), vectors = (vocab - head) / 8;
  const int first = static_cast<int>(int64_t{vectors} * rank / blocks);
  const int mine = static_cast<int>(int64_t{vectors} * (rank + 1) / blocks) - first;
  uint4* const body = reinterpret_cast<uint4*>(row + head) + first;

  if (lane == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&arrivals[warp])) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    unsigned bytes = 0;
    for (int at = warp * kChunk; at < mine; at += kWarps * kChunk) bytes += 16 * min(kChunk, mine - at);
    expect_bytes(&arrivals[warp], bytes);
    for (int at = warp * kChunk; at < mine; at += kWarps * kChunk)
      load_bulk(part + at, body + at, 16 * min(kChunk, mine - at), &arrivals[warp]);
  }
  __syncwarp();  // the barrier is ready

  // The ends of the row: the first block has the head, the last one the tail; an element a thread.
  const int tail = head + vectors * 8, i = threadIdx.x;
  int edge = -1;  // the column
  if (rank == 0 && i < head) edge = i;
  if (rank == blocks - 1 && i >= 8 && i - 8 < vocab - tail) edge = tail + i - 8;
  const float of_edge = edge >= 0 ? __bfloat162float(row[edge]) : 0.0f;
  const int chosen = target[which];
  const bool counts = chosen >= 0 && chosen < vocab;
  const float picked = counts && i == 0 && rank == 0 ? __bfloat162float(row[chosen]) : 0.0f;

  Running running = {kNothing, 0};
  if (edge >= 0) running.add(of_edge);
  wait_for(&arrivals[warp]);
  for (int at = warp * kChunk; at < mine; at += kWarps * kChunk) {
    unsigned word[kLoads * 4];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      uint4 v = make_uint4(kNoPair, kNoPair, kNoPair, kNoPair);
      if (at + k * 32 + lane < mine) v = part[at + k * 32 + lane];
      word[k * 4] = v.x, word[k * 4 + 1] = v.y, word[k * 4 + 2] = v.z, word[k * 4 + 3] = v.w;
    }
    unsigned largest = word[0];
#pragma unroll
    for (int w = 1; w < kLoads * 4; ++w) largest = larger_pair(largest, word[w]);
    const float offset = running.grow_to(fmaxf(low(largest), high(largest)));
    float sum[2] = {0, 0};
#pragma unroll
    for (int w = 0; w < kLoads * 4; ++w) {
      sum[0] += power_of_two(fmaf(low(word[w]), kLog2E, -offset));
      sum[1] += power_of_two(fmaf(high(word[w]), kLog2E, -offset));
    }
    running.sum += sum[0] + sum[1];
  }

  // The pair of the row: of the warps, then of the blocks. Behind the last barrier all of the row is read,
  // and no block touches another one's memory any more.
  running = warp_merge(running);
  if (lane == 0) of_warps[warp] = running;
  __syncthreads();
  const Running nothing = {kNothing, 0};
  running = warp_merge(lane < kWarps ? of_warps[lane] : nothing);
  cluster.sync();  // all blocks run
  if (i < blocks) cluster.map_shared_rank(of_blocks, i)[rank] = running;
  cluster.sync();
  running = warp_merge(lane < blocks ? of_blocks[lane] : nothing);
  if (i == 0 && rank == 0) loss[which] = counts ? running.maximum + kLn2 * log2f(running.sum) - picked : 0.0f;

  const float exponent = running.maximum * kLog2E + log2f(running.sum);
  const auto probability = [&](float x) { return power_of_two(fmaf(x, kLog2E, -exponent)); };
  const auto gradient = [&](float x, int column) {
    return counts ? probability(x) - (column == chosen ? 1.0f : 0.0f) : 0.0f;
  };
  // No float compares with the target in most vectors: the compare is one for eight elements.
  const int target_vector = counts && chosen >= head ? (chosen - head) / 8 - first : -1;
  for (int at = warp * kChunk; at < mine; at += kWarps * kChunk) {
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int vector = at + k * 32 + lane;
      if (vector >= mine) continue;
      const uint4 v = part[vector];
      unsigned word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        float below = probability(low(word[w])), above = probability(high(word[w]));
        if (vector == target_vector) {
          const int column = head + (first + vector) * 8 + 2 * w;
          below -= column == chosen ? 1.0f : 0.0f, above -= column + 1 == chosen ? 1.0f : 0.0f;
        }
        const __nv_bfloat162 pair = __floats2bfloat162_rn(below, above);
        word[w] = counts ? reinterpret_cast<const unsigned&>(pair) : 0u;
      }
      part[vector] = make_uint4(word[0], word[1], word[2], word[3]);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy sees what was written
    __syncwarp();
    if (lane == 0) store_bulk(body + at, part + at, 16 * min(kChunk, mine - at));
  }
  if (edge >= 0) row[edge] = __float2bfloat16(gradient(of_edge, edge));
  if (lane == 0) {  // shared memory stays until it is read
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

extern "C" void launch(__nv_bfloat16* logits /*[rows,vocab]*/, const int32_t* target /*[rows]*/,
                       float* loss /*[rows]*/, int64_t rows, int64_t vocab, void* /*workspace*/,
                       cudaStream_t stream) {
  unsigned blocks = 1;
  const auto bytes = [&] { return (vocab / 8 + blocks - 1) / blocks * 16; };
  while (blocks < kMostBlocks && bytes() > kFriendly) blocks *= 2;
  const auto shared = static_cast<unsigned>(bytes());
  cudaFuncSetAttribute(loss_and_gradient, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(shared));
  cudaLaunchAttribute cluster[1];
  cluster[0].id = cudaLaunchAttributeClusterDimension;
  cluster[0].val.clusterDim.x = blocks, cluster[0].val.clusterDim.y = 1, cluster[0].val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(rows) * blocks);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, loss_and_gradient, logits, target, loss, static_cast<int>(vocab));
}
