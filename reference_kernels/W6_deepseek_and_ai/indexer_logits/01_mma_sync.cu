// Rung 1: keys are rows of the product, so that a thread adds up heads by itself.
//
// Changed     -
// Why         64 products end as one number. With keys as rows and a query's heads as columns, a lane holds
//             16 heads of two keys; two shuffles finish both sums. The 16 keys of a warp stay in registers
//             for all queries of a block. A block whose keys none of its queries sees only writes -inf.
// Prediction  250 TFLOP/s: mma.sync reaches half of the tensor cores' rate at best, and every warp reads each
//             query from shared memory for 16 keys only.
// Came        1.36 ms on an H100, 179 TFLOP/s; the native baseline is this kernel.
//
// Shapes      q [s, 64, 128], k [n, 128], e4m3; sk [n], w [s, 64], fp32; starts, ends [s], i32; logits [s,
//             n], fp32; all row-major. starts <= j < ends is the window of a row, cut to 0 <= j < n.
// Launch      one block of 256 threads for 128 keys and 8 queries; a warp has 16 keys.
// Resources   98 registers a thread on sm_90a, 16 of them keys; 9 KB of shared memory: one query.
// Cost        16576 FLOPs for each pair of a tile that a window touches; 16 bytes of keys and 64 of queries
//             from the L2 cache for each of them; 4 s n bytes written.
// Divides     s and n anything; what lies outside counts as zero.
// Source      lightning indexer: DeepSeek-V3.2-Exp (2025), equation 1. Needs sm_89.
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

using e4m3 = __nv_fp8_e4m3;

constexpr int kHeads = 64, kDim = 128, kKeys = 128, kQueries = 8, kThreads = 256;
constexpr int kPitch = kDim + 16;  // [B] 36 words: the eight rows that a warp reads at once meet all banks

/// d += a * b: 16 keys x 8 heads, 32 deep, by one warp.
__device__ void multiply(float (&d)[4], const uint32_t* a, const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// The two keys' sums over heads, from the lanes that share them: four neighbours.
__device__ float over_lanes(float (&sum)[2]) {
  const bool second = threadIdx.x % 2;  // odd lanes go on with the second key
  float mine = sum[second] + __shfl_xor_sync(~0u, sum[!second], 1);
  return mine + __shfl_xor_sync(~0u, mine, 2);
}

__global__ void __launch_bounds__(kThreads)
    indexer(const e4m3* __restrict__ q, const e4m3* __restrict__ k, const float* __restrict__ sk,
            const float* __restrict__ w, const int* __restrict__ starts, const int* __restrict__ ends,
            float* __restrict__ logits, int s, int n) {
  __shared__ __align__(16) uint8_t query[kHeads * kPitch];
  __shared__ float weights[kHeads];
  const int first_query = blockIdx.y * kQueries, queries = min(kQueries, s - first_query);
  const int first_key = blockIdx.x * kKeys, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int near = lane % 4, far = lane / 4;  // far: of eight rows, near: of four words

  const int my_key = first_key + warp * 16 + far;  // and the one 8 below
  uint32_t keys[kDim / 32][4];
#pragma unroll
  for (int i = 0; i < kDim / 32; ++i)
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int key = my_key + part % 2 * 8, depth = i * 32 + part / 2 * 16 + near * 4;
      keys[i][part] =
          key < n ? *reinterpret_cast<const uint32_t*>(k + static_cast<int64_t>(key) * kDim + depth) : 0;
    }
  const int out_key = my_key + near % 2 * 8;  // whose sum this lane ends with
  const float scale = out_key < n ? sk[out_key] : 0;

  for (int i = 0; i < queries; ++i) {
    const int row = first_query + i, start = starts[row], end = ends[row];
    float result = -INFINITY;
    if (start < first_key + kKeys && end > first_key && start < end) {  // the same for all threads
      __syncthreads();                                                  // the query before has been used
      for (int piece = threadIdx.x; piece < kHeads * kDim / 16; piece += kThreads)
        *reinterpret_cast<uint4*>(query + piece / 8 * kPitch + piece % 8 * 16) =
            reinterpret_cast<const uint4*>(q + static_cast<int64_t>(row) * kHeads * kDim)[piece];
      if (threadIdx.x < kHeads) weights[threadIdx.x] = w[static_cast<int64_t>(row) * kHeads + threadIdx.x];
      __syncthreads();
      float sum[2] = {};
#pragma unroll
      for (int head = 0; head < kHeads; head += 8) {
        float product[4] = {};
#pragma unroll
        for (int step = 0; step < kDim / 32; ++step) {
          const uint8_t* const at = query + (head + far) * kPitch + step * 32 + near * 4;
          const uint32_t heads[2] = {*reinterpret_cast<const uint32_t*>(at),
                                     *reinterpret_cast<const uint32_t*>(at + 16)};
          multiply(product, keys[step], heads);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)  // a lane holds pairs of heads: of its first key, then of its second
          sum[j / 2] += fmaxf(product[j], 0) * weights[head + near * 2 + j % 2];
      }
      const float total = over_lanes(sum) * scale;
      if (out_key >= start && out_key < end) result = total;
    }
    if (near < 2 && out_key < n) logits[static_cast<int64_t>(row) * n + out_key] = result;
  }
}

extern "C" void launch(const e4m3* q /*[s,64,128]*/, const e4m3* k /*[n,128]*/, const float* sk /*[n]*/,
                       const float* w /*[s,64]*/, const int* starts /*[s]*/, const int* ends /*[s]*/,
                       float* logits /*[s,n]*/, int64_t s, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + kKeys - 1) / kKeys),
                  static_cast<unsigned>((s + kQueries - 1) / kQueries));
  indexer<<<grid, kThreads, 0, stream>>>(q, k, sk, w, starts, ends, logits, static_cast<int>(s),
                                         static_cast<int>(n));
}
