// Rung 3: 16 bytes a load, the vector in shared memory.
//
// Changed     a lane loads eight columns at once. The 16 warps of a block copy 8192 elements of x at a time
//             to shared memory, and all of them read it there. Rows that do not start on 16 bytes take the
//             kernel of rung 2.
// Why         rung 2 has 2 bytes in flight for each load instruction, and half of its loads are for x. Now a
//             load of `a` brings eight times as much, and x comes from L2 once for 16 rows.
// Prediction  with 32 warps and up to four loads of 512 bytes in flight for each: up to 64 KB a
//             multiprocessor. But nothing is in flight while a block fetches x: 85 % of a copy, 147 us.
// Came        132 us, 99 % of a copy: other blocks hide the wait for x.
//
// Shapes      a [m, k], x [k], y [m], bf16, row-major; any m, any k.
// Launch      <<<m / 16, 512>>>: sixteen rows a block.
// Resources   56 registers (two blocks a multiprocessor); 16 KB of shared memory.
// Cost        2 * m * k FLOPs; 2 * m * k bytes, and a sixteenth of that from L2 for x.
// Divides     k % 8 == 0 for the fast kernel; any other k takes the general one.
// Source      vectorised access and shared memory, CUDA C++ Best Practices Guide.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWarps = 16, kThreads = kWarps * 32;
constexpr int kTile = 1024;  // vectors of 8 elements of x in shared memory

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

__device__ float dot(uint4 a, uint4 x, float sum) {
  sum = fmaf(low(a.x), low(x.x), sum), sum = fmaf(high(a.x), high(x.x), sum);
  sum = fmaf(low(a.y), low(x.y), sum), sum = fmaf(high(a.y), high(x.y), sum);
  sum = fmaf(low(a.z), low(x.z), sum), sum = fmaf(high(a.z), high(x.z), sum);
  return fmaf(high(a.w), high(x.w), fmaf(low(a.w), low(x.w), sum));
}

__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__global__ void __launch_bounds__(kThreads)
    gemv(const uint4* __restrict__ a, const uint4* __restrict__ x, __nv_bfloat16* __restrict__ y, int64_t m,
         int64_t vectors) {
  __shared__ uint4 tile[kTile];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float sum = 0;
  for (int64_t first = 0; first < vectors; first += kTile) {
    const int count = static_cast<int>(min(vectors - first, int64_t{kTile}));
    __syncthreads();  // the tile before has been used
    for (int i = threadIdx.x; i < count; i += kThreads) tile[i] = x[first + i];
    __syncthreads();
    if (row >= m) continue;
    const uint4* from = a + row * vectors + first;
    for (int i = lane; i < count; i += 32) sum = dot(__ldcs(from + i), tile[i], sum);  // `a` is read once
  }
  sum = warp_sum(sum);
  if (row < m && lane == 0) y[row] = __float2bfloat16(sum);
}

/// Any k: a warp a row, element by element.
__global__ void gemv_ragged(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ x,
                            __nv_bfloat16* __restrict__ y, int64_t m, int64_t k) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= m) return;
  const int lane = threadIdx.x % 32;
  float sum = 0;
  for (int64_t j = lane; j < k; j += 32) sum += __bfloat162float(a[row * k + j]) * __bfloat162float(x[j]);
  sum = warp_sum(sum);
  if (lane == 0) y[row] = __float2bfloat16(sum);
}

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* x /*[k]*/,
                       __nv_bfloat16* y /*[m]*/, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((m + kWarps - 1) / kWarps);
  if (k % 8 != 0) {
    gemv_ragged<<<blocks, kThreads, 0, stream>>>(a, x, y, m, k);
    return;
  }
  gemv<<<blocks, kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(a), reinterpret_cast<const uint4*>(x),
                                        y, m, k / 8);
}
