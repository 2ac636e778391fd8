// Native baseline: y = LayerNorm(residual + gelu(x + bias)) * gamma + beta, the way PyTorch eager runs it.
//
// Four kernels, one an operator: bias add, GELU (erf), residual add, LayerNorm. Each reads its operands from global
// memory and writes its whole result back, because an eager framework cannot look past one operator. Every kernel is
// as good as that allows: 16-byte accesses where rows are aligned, one pass of HBM traffic each, the LayerNorm's second
// and third look at a row served by the L1 cache. What is left to win is fusion, nothing else.
//
// Traffic: 9 * rows * cols floats (2 bias, 2 GELU, 3 residual, 2 LayerNorm), where 3 * rows * cols would do.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678118654752f)); }

__device__ float4 add(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

/// out = x + bias; one block a row. `kVector` needs cols % 4 == 0, so that every row starts on 16 bytes.
template <bool kVector>
__global__ void bias_add(const float* __restrict__ x, const float* __restrict__ bias, float* __restrict__ out,
                         int64_t cols) {
  const int64_t row = blockIdx.x;
  if constexpr (kVector) {
    const float4* x4 = reinterpret_cast<const float4*>(x + row * cols);
    const float4* bias4 = reinterpret_cast<const float4*>(bias);
    float4* out4 = reinterpret_cast<float4*>(out + row * cols);
    for (int64_t i = threadIdx.x; i < cols / 4; i += kThreads) out4[i] = add(x4[i], bias4[i]);
  } else {
    for (int64_t i = threadIdx.x; i < cols; i += kThreads) out[row * cols + i] = x[row * cols + i] + bias[i];
  }
}

/// out[i] = gelu(in[i]) for i < count. A flat operator: 16-byte accesses at any shape, the last 1..3 elements one by one.
__global__ void gelu_elements(const float* __restrict__ in, float* __restrict__ out, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t vectors = count / 4;
  if (i < vectors) {
    const float4 v = reinterpret_cast<const float4*>(in)[i];
    reinterpret_cast<float4*>(out)[i] = make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
  } else if (const int64_t tail = vectors * 4 + (i - vectors); tail < count) {
    out[tail] = gelu(in[tail]);
  }
}

/// out[i] = a[i] + b[i] for i < count.
__global__ void add_elements(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                             int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t vectors = count / 4;
  if (i < vectors) {
    reinterpret_cast<float4*>(out)[i] =
        add(reinterpret_cast<const float4*>(a)[i], reinterpret_cast<const float4*>(b)[i]);
  } else if (const int64_t tail = vectors * 4 + (i - vectors); tail < count) {
    out[tail] = a[tail] + b[tail];
  }
}

/// The sum of `v` over the block, in every thread. `partial` must not be in use by an earlier sum.
__device__ float block_sum(float v, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[threadIdx.x % kWarps];
  for (int offset = kWarps / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

/// One block a row: mean, then variance about that mean, then the affine map.
template <bool kVector>
__global__ void layer_norm(const float* __restrict__ in, const float* __restrict__ gamma,
                           const float* __restrict__ beta, float* __restrict__ out, float eps, int64_t cols) {
  __shared__ float partial[2][kWarps];
  const float* row = in + blockIdx.x * cols;
  const int64_t vectors = kVector ? cols / 4 : 0;  // the scalar loops start behind these
  const float4* row4 = reinterpret_cast<const float4*>(row);

  float sum = 0;
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    const float4 v = row4[i];
    sum += (v.x + v.y) + (v.z + v.w);
  }
  for (int64_t i = vectors * 4 + threadIdx.x; i < cols; i += kThreads) sum += row[i];
  const float mean = block_sum(sum, partial[0]) / static_cast<float>(cols);

  float squares = 0;
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    const float4 v = row4[i];
    const float a = v.x - mean, b = v.y - mean, c = v.z - mean, d = v.w - mean;
    squares += (a * a + b * b) + (c * c + d * d);
  }
  for (int64_t i = vectors * 4 + threadIdx.x; i < cols; i += kThreads) squares += (row[i] - mean) * (row[i] - mean);
  const float inverse = rsqrtf(block_sum(squares, partial[1]) / static_cast<float>(cols) + eps);

  float* to = out + blockIdx.x * cols;
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    const float4 v = row4[i];
    const float4 g = reinterpret_cast<const float4*>(gamma)[i];
    const float4 b = reinterpret_cast<const float4*>(beta)[i];
    reinterpret_cast<float4*>(to)[i] =
        make_float4((v.x - mean) * inverse * g.x + b.x, (v.y - mean) * inverse * g.y + b.y,
                    (v.z - mean) * inverse * g.z + b.z, (v.w - mean) * inverse * g.w + b.w);
  }
  for (int64_t i = vectors * 4 + threadIdx.x; i < cols; i += kThreads)
    to[i] = (row[i] - mean) * inverse * gamma[i] + beta[i];
}

/// Bytes of one intermediate tensor, rounded up so that the next one is 256-byte aligned, too.
size_t intermediate_bytes(int64_t rows, int64_t cols) {
  return (static_cast<size_t>(rows) * static_cast<size_t>(cols) * sizeof(float) + 255) / 256 * 256;
}

}  // namespace

extern "C" const char* baseline_label() { return "native eager: 4 kernels (bias, GELU, residual, LayerNorm), fp32"; }

extern "C" size_t workspace_bytes(int64_t rows, int64_t cols) { return 2 * intermediate_bytes(rows, cols); }

extern "C" void launch(const float* x /*[rows,cols]*/, const float* residual /*[rows,cols]*/,
                       const float* bias /*[cols]*/, const float* gamma /*[cols]*/, const float* beta /*[cols]*/,
                       float* y /*[rows,cols]*/, float eps, int64_t rows, int64_t cols, void* workspace,
                       cudaStream_t stream) {
  float* first = static_cast<float*>(workspace);
  float* second = reinterpret_cast<float*>(static_cast<char*>(workspace) + intermediate_bytes(rows, cols));
  const int64_t count = rows * cols;
  // A thread takes four elements; up to three more threads take the tail.
  const unsigned flat_blocks = static_cast<unsigned>((count / 4 + 3 + kThreads - 1) / kThreads);
  const unsigned row_blocks = static_cast<unsigned>(rows);

  if (cols % 4 == 0)
    bias_add<true><<<row_blocks, kThreads, 0, stream>>>(x, bias, first, cols);
  else
    bias_add<false><<<row_blocks, kThreads, 0, stream>>>(x, bias, first, cols);
  gelu_elements<<<flat_blocks, kThreads, 0, stream>>>(first, second, count);
  add_elements<<<flat_blocks, kThreads, 0, stream>>>(residual, second, first, count);
  if (cols % 4 == 0)
    layer_norm<true><<<row_blocks, kThreads, 0, stream>>>(first, gamma, beta, y, eps, cols);
  else
    layer_norm<false><<<row_blocks, kThreads, 0, stream>>>(first, gamma, beta, y, eps, cols);
}
