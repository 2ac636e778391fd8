// Rung 1: a thread a row.
//
// Changed     nothing yet: the direct translation of the sum.
// Why         this is how the formula reads: one result, one thread.
// Prediction  the 32 lanes of a warp read 2 bytes each, 32 KB apart: 32 sectors for 64 bytes. A sector serves
//             the next 15 loads only if it survives in the L1 cache. And 16384 threads are 4 warps a
//             multiprocessor: 4 sectors a thread in flight are 16 KB, half of what is needed, and each waits
//             for the one before. Expect 10 % of a copy: 1.2 ms.
// Came        1.47 ms, 9 % of a copy.
//
// Shapes      a [m, k], x [k], y [m], bf16, row-major; any m, any k.
// Launch      <<<m / 128, 128>>>; a thread walks its row.
// Resources   about 32 registers; no shared memory.
// Cost        2 * m * k FLOPs; 2 * m * k bytes if every sector is fetched once.
// Divides     no divisibility is required.
// Source      the definition.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 128;

__global__ void gemv(const __nv_bfloat16* a, const __nv_bfloat16* x, __nv_bfloat16* y, int64_t m, int64_t k) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= m) return;
  float sum = 0;
  for (int64_t j = 0; j < k; ++j) sum += __bfloat162float(a[row * k + j]) * __bfloat162float(x[j]);
  y[row] = __float2bfloat16(sum);
}

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* x /*[k]*/,
                       __nv_bfloat16* y /*[m]*/, int64_t m, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  gemv<<<static_cast<unsigned>((m + kThreads - 1) / kThreads), kThreads, 0, stream>>>(a, x, y, m, k);
}
