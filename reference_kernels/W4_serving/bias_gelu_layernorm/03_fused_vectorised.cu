// Rung 3: the row lives in registers, and every access is 16 bytes wide.
//
// Changed     a thread owns kVectors float4 of the row in registers; shared memory is left with the partial
//             sums. All 2 * kVectors loads are issued before the first is used. x, residual and y are
//             streamed (evict-first), so that bias, gamma and beta, which every row reads again, stay in the
//             caches.
// Why         rung 2 waits: a thread has two 4-byte loads in flight where the memory system needs about 25 KB
//             a multiprocessor. Here a block of 256 has 32 KB in flight at cols = 4096.
// Prediction  the same bytes, closer to the speed of a copy: from about 75 % to 90 % of it.
//
// Shapes      x, residual, y [rows, cols]; bias, gamma, beta [cols]; any rows, any cols.
// Launch      <<<rows, 256>>>; kVectors = 1, 2, 4 or 8, the least with 1024 * kVectors >= cols.
// Resources   48 registers at cols = 4096 (five blocks per multiprocessor), 80 at 8192; 64 bytes of shared
//             memory.
// Cost        20 * rows * cols FLOPs; 12 * rows * cols bytes.
// Divides     cols % 4 == 0 and cols <= 8192 for the fast path (rows start on 16 bytes only then); any other
//             shape takes the scalar kernel below, which keeps the row in y between its passes.
// Source      Little's law (bytes in flight = latency x bandwidth); vectorised access, CUDA C++ Best
//             Practices Guide.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678118654752f)); }

/// The sum of v over the block, in every thread. `partial` must not be in use by an earlier sum.
__device__ float block_sum(float v, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int warp = 0; warp < kWarps; ++warp) v += partial[warp];
  return v;
}

__device__ float squared_distance(float4 v, float mean) {
  const float a = v.x - mean, b = v.y - mean, c = v.z - mean, d = v.w - mean;
  return (a * a + b * b) + (c * c + d * d);
}

template <int kVectors>
__global__ void __launch_bounds__(kThreads)
    fused(const float4* __restrict__ x, const float4* __restrict__ residual, const float4* __restrict__ bias,
          const float4* __restrict__ gamma, const float4* __restrict__ beta, float4* __restrict__ y, float eps,
          int cols) {
  __shared__ float partial[2][kWarps];
  const int vectors = cols / 4;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * vectors;

  float4 t[kVectors], r[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int c = i * kThreads + threadIdx.x;
    t[i] = r[i] = make_float4(0, 0, 0, 0);
    if (c < vectors) {
      t[i] = __ldcs(x + row + c);
      r[i] = __ldcs(residual + row + c);
    }
  }

  float sum = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int c = i * kThreads + threadIdx.x;
    if (c >= vectors) continue;
    const float4 b = bias[c];
    t[i] = make_float4(r[i].x + gelu(t[i].x + b.x), r[i].y + gelu(t[i].y + b.y), r[i].z + gelu(t[i].z + b.z),
                       r[i].w + gelu(t[i].w + b.w));
    sum += (t[i].x + t[i].y) + (t[i].z + t[i].w);
  }
  const float mean = block_sum(sum, partial[0]) / cols;

  float squares = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int c = i * kThreads + threadIdx.x;
    if (c < vectors) squares += squared_distance(t[i], mean);
  }
  const float inverse = rsqrtf(block_sum(squares, partial[1]) / cols + eps);

#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int c = i * kThreads + threadIdx.x;
    if (c >= vectors) continue;
    const float4 g = gamma[c], b = beta[c];
    __stcs(y + row + c,
           make_float4((t[i].x - mean) * inverse * g.x + b.x, (t[i].y - mean) * inverse * g.y + b.y,
                       (t[i].z - mean) * inverse * g.z + b.z, (t[i].w - mean) * inverse * g.w + b.w));
  }
}

/// Any shape: element by element, the row of y as scratch (a thread reads back only what it wrote).
__global__ void fused_ragged(const float* x, const float* residual, const float* bias, const float* gamma,
                             const float* beta, float* y, float eps, int64_t cols) {
  __shared__ float partial[2][kWarps];
  const int64_t row = blockIdx.x * cols;

  float sum = 0;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads)
    sum += y[row + c] = residual[row + c] + gelu(x[row + c] + bias[c]);
  const float mean = block_sum(sum, partial[0]) / cols;

  float squares = 0;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) squares += (y[row + c] - mean) * (y[row + c] - mean);
  const float inverse = rsqrtf(block_sum(squares, partial[1]) / cols + eps);

  for (int64_t c = threadIdx.x; c < cols; c += kThreads)
    y[row + c] = (y[row + c] - mean) * inverse * gamma[c] + beta[c];
}

extern "C" void launch(const float* x /*[rows,cols]*/, const float* residual /*[rows,cols]*/,
                       const float* bias /*[cols]*/, const float* gamma /*[cols]*/, const float* beta /*[cols]*/,
                       float* y /*[rows,cols]*/, float eps, int64_t rows, int64_t cols, void* /*workspace*/,
                       cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  if (cols % 4 != 0 || cols > 8192) {
    fused_ragged<<<blocks, kThreads, 0, stream>>>(x, residual, bias, gamma, beta, y, eps, cols);
    return;
  }
  const auto vector = [](const float* p) { return reinterpret_cast<const float4*>(p); };
  const auto kernel = cols <= 1024 ? fused<1> : cols <= 2048 ? fused<2> : cols <= 4096 ? fused<4> : fused<8>;
  kernel<<<blocks, kThreads, 0, stream>>>(vector(x), vector(residual), vector(bias), vector(gamma), vector(beta),
                                          reinterpret_cast<float4*>(y), eps, static_cast<int>(cols));
}
