// Rung 1: one thread, one element, straight from the formula.
//
// Changed     nothing yet: Horner's rule, from the highest power down, each coefficient loaded where it is
//             needed.
// Why         one multiply-add a term is all the arithmetic there is. But each waits for the one before, and
//             for its coefficient.
// Prediction  64 warps per multiprocessor hide both latencies; a load for each multiply-add does not hide: a
//             third of the peak.
//
// Shapes      x, y [n], c [terms]; any n up to 2^31 * 256, any terms.
// Launch      <<<ceil(n / 256), 256>>>.
// Resources   about 20 registers, no shared memory.
// Cost        2 n terms FLOPs; 8 n bytes, and a load of a coefficient for each multiply-add of a warp.
// Divides     no divisibility is required: threads past the end leave.
// Source      Horner's rule.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void polynomial(const float* __restrict__ x, const float* __restrict__ c, float* __restrict__ y, float radius, int64_t n, int64_t terms) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const float t = radius * x[i] / (1 + fabsf(x[i]));
  float v = 0;
  for (int64_t k = terms - 1; k >= 0; --k) v = v * t + c[k];
  y[i] = v;
}

extern "C" void launch(const float* x /*[n]*/, const float* c /*[terms]*/, float* y /*[n]*/, float radius, int64_t n, int64_t terms,
                       void* /*workspace*/, cudaStream_t stream) {
  polynomial<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, c, y, radius, n, terms);
}
