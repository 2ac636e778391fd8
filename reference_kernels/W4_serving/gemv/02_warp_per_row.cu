// Rung 2: a warp a row.
//
// Changed     the 32 lanes of a warp share a row: lane l takes the columns l, l + 32, ... Five shuffles add
//             the sums of the lanes.
// Why         neighbouring lanes read neighbouring bytes: a load of the warp touches 2 sectors, not 32, and
//             uses all of their bytes at once. There are 32 times as many threads.
// Prediction  64 warps a multiprocessor with 64 bytes a load and four loads in flight are 16 KB: half of the
//             33 KB that 4.3 TB/s need. Expect 50 % of a copy: 250 us.
// Came        167 us, 78 % of a copy: better than predicted.
//
// Shapes      a [m, k], x [k], y [m], bf16, row-major; any m, any k.
// Launch      <<<m / 8, 256>>>: eight rows a block.
// Resources   about 32 registers; no shared memory.
// Cost        2 * m * k FLOPs; 2 * m * k bytes, and as many again from the L1 cache for x.
// Divides     no divisibility is required.
// Source      coalesced access and warp shuffles, CUDA C++ Programming Guide.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWarps = 8;

__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__global__ void gemv(const __nv_bfloat16* a, const __nv_bfloat16* x, __nv_bfloat16* y, int64_t m, int64_t k) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= m) return;  // a whole warp leaves together
  const int lane = threadIdx.x % 32;
  float sum = 0;
  for (int64_t j = lane; j < k; j += 32) sum += __bfloat162float(a[row * k + j]) * __bfloat162float(x[j]);
  sum = warp_sum(sum);
  if (lane == 0) y[row] = __float2bfloat16(sum);
}

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* x /*[k]*/,
                       __nv_bfloat16* y /*[m]*/, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  gemv<<<static_cast<unsigned>((m + kWarps - 1) / kWarps), kWarps * 32, 0, stream>>>(a, x, y, m, k);
}
