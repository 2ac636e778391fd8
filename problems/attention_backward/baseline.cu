// Native baseline: the gradients of attention as an eager framework computes them: five products, and the
// softmax's gradient between them, for some heads at a time.
//
// The products are cuBLAS's, on tensor cores, scores in fp32. On the emulated backend there is no cuBLAS;
// plain kernels stand in, and the label says so. Emulated times never count, so nothing is lost but the name.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace {

using bf16 = __nv_bfloat16;
constexpr int kThreads = 256;

/// A row-major matrix in a batch: [rows, columns] a head, or its transpose where `turned`.
struct Operand {
  const bf16* data;
  bool turned;
};

/// delta[row] = sum of dout * o over the row. One warp a row.
__global__ void row_sums(const bf16* o, const bf16* dout, float* delta, int64_t rows, int64_t d) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int64_t x = threadIdx.x % 32; x < d; x += 32)
    sum += __bfloat162float(o[row * d + x]) * __bfloat162float(dout[row * d + x]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) delta[row] = sum;
}

/// Scores and gradients of the weights become weights and gradients of the scores. One element a thread.
__global__ void weigh(const float* scores, const float* dp, const float* lse, const float* delta,
                      bf16* weights, bf16* gradients, float factor, int64_t pairs, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= pairs) return;
  const float weight = expf(scores[i] * factor - lse[i / n]);
  weights[i] = __float2bfloat16(weight);
  gradients[i] = __float2bfloat16(weight * (dp[i] - delta[i / n]) * factor);
}

size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Of how many heads of k the matrices exist at a time: as many as 4 GiB hold, at least one. The h / hk heads
/// of q that share a head of k lie one after the other: one matrix of `queries` = h / hk * n rows.
int64_t heads_at_once(int64_t hk, int64_t queries, int64_t n) {
  const int64_t fit =
      (int64_t{4} << 30) / (queries * n * static_cast<int64_t>(2 * sizeof(float) + 2 * sizeof(bf16)));
  return fit < 1 ? 1 : fit < hk ? fit : hk;
}

/// Where everything lies, in bytes.
struct Places {
  size_t dp, weights, gradients, delta, library, bytes;
  Places(int64_t heads, int64_t queries, int64_t h, int64_t n, size_t library_bytes) {
    const size_t pairs = static_cast<size_t>(heads) * static_cast<size_t>(queries) * static_cast<size_t>(n);
    dp = round_up(pairs * sizeof(float));
    weights = dp + round_up(pairs * sizeof(float));
    gradients = weights + round_up(pairs * sizeof(bf16));
    delta = gradients + round_up(pairs * sizeof(bf16));
    library = delta + round_up(static_cast<size_t>(h * n) * sizeof(float));
    bytes = library + library_bytes;
  }
};

unsigned blocks(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

}  // namespace

#ifndef CAPSTONE_EMULATED

#include <cublas_v2.h>

#include <stdexcept>
#include <string>

namespace {

// What NVIDIA recommends for Hopper (cublasSetWorkspace); ample for older chips.
constexpr size_t kLibraryBytes = size_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
}

/// One handle for the life of the process: creating it costs far more than any product.
cublasHandle_t handle() {
  static const cublasHandle_t created = [] {
    cublasHandle_t h = nullptr;
    check(cublasCreate(&h), "cublasCreate");
    return h;
  }();
  return created;
}

void begin(void* workspace, cudaStream_t stream) {
  check(cublasSetStream(handle(), stream),
        "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), workspace, kLibraryBytes), "cublasSetWorkspace");
}

/// c [heads, m, n] = a [heads, m, k] b [heads, k, n], row-major. cuBLAS is column-major, and a row-major
/// matrix read that way is its transpose: C^T = B^T A^T.
template <class T>
void multiply(Operand a, Operand b, T* c, int64_t heads, int64_t m, int64_t n, int64_t k, cudaStream_t) {
  const float one = 1, zero = 0;
  check(cublasGemmStridedBatchedEx_64(
            handle(), b.turned ? CUBLAS_OP_T : CUBLAS_OP_N, a.turned ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k,
            &one, b.data, CUDA_R_16BF, b.turned ? k : n, n * k, a.data, CUDA_R_16BF, a.turned ? m : k, m * k,
            &zero, c, sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_16BF, n, m * n, heads, CUBLAS_COMPUTE_32F,
            CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
}

std::string version() {
  int major = 0, minor = 0;
  check(cublasGetProperty(MAJOR_VERSION, &major), "cublasGetProperty");
  check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "native eager: five products of cuBLAS " + version() + ", bf16";
  return label.c_str();
}

#else

namespace {

constexpr size_t kLibraryBytes = 0;

void begin(void*, cudaStream_t) {}

__device__ void put(float* to, float value) { *to = value; }
__device__ void put(bf16* to, float value) { *to = __float2bfloat16(value); }

/// One result a thread.
template <class T>
__global__ void plain_product(Operand a, Operand b, T* c, int64_t results, int64_t m, int64_t n, int64_t k) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= results) return;
  const int64_t head = i / (m * n), row = i / n % m, column = i % n;
  const bf16 *left = a.data + head * m * k, *right = b.data + head * k * n;
  float sum = 0;
  for (int64_t x = 0; x < k; ++x)
    sum += __bfloat162float(left[a.turned ? x * m + row : row * k + x]) *
           __bfloat162float(right[b.turned ? column * k + x : x * n + column]);
  put(c + i, sum);
}

template <class T>
void multiply(Operand a, Operand b, T* c, int64_t heads, int64_t m, int64_t n, int64_t k,
              cudaStream_t stream) {
  plain_product<<<blocks(heads * m * n), kThreads, 0, stream>>>(a, b, c, heads * m * n, m, n, k);
}

}  // namespace

extern "C" const char* baseline_label() {
  return "native eager: seven kernels, bf16 (emulated: stand in for cuBLAS)";
}

#endif

extern "C" size_t workspace_bytes(int64_t h, int64_t n, int64_t /*d*/, int64_t hk) {
  const int64_t queries = h / hk * n;
  return Places(heads_at_once(hk, queries, n), queries, h, n, kLibraryBytes).bytes;
}

extern "C" void launch(const bf16* q /*[h,n,d]*/, const bf16* k /*[hk,n,d]*/, const bf16* v /*[hk,n,d]*/,
                       const bf16* o /*[h,n,d]*/, const bf16* dout /*[h,n,d]*/, const float* lse /*[h,n]*/,
                       bf16* dq /*[h,n,d]*/, bf16* dk /*[hk,n,d]*/, bf16* dv /*[hk,n,d]*/, int64_t h,
                       int64_t n, int64_t d, int64_t hk, void* workspace, cudaStream_t stream) {
  const int64_t queries = h / hk * n, most = heads_at_once(hk, queries, n);
  const Places places(most, queries, h, n, kLibraryBytes);
  char* const from = static_cast<char*>(workspace);
  float *scores = static_cast<float*>(workspace), *dp = reinterpret_cast<float*>(from + places.dp);
  bf16* weights = reinterpret_cast<bf16*>(from + places.weights);
  bf16* gradients = reinterpret_cast<bf16*>(from + places.gradients);
  float* delta = reinterpret_cast<float*>(from + places.delta);
  begin(from + places.library, stream);
  row_sums<<<static_cast<unsigned>((h * n + kThreads / 32 - 1) / (kThreads / 32)), kThreads, 0, stream>>>(
      o, dout, delta, h * n, d);
  const float factor = 1 / std::sqrt(static_cast<float>(d));
  for (int64_t first = 0; first < hk; first += most) {
    const int64_t heads = first + most < hk ? most : hk - first, pairs = heads * queries * n;
    const int64_t row = first * queries, at_q = row * d, at_k = first * n * d;
    multiply({q + at_q, false}, {k + at_k, true}, scores, heads, queries, n, d, stream);
    multiply({dout + at_q, false}, {v + at_k, true}, dp, heads, queries, n, d, stream);
    weigh<<<blocks(pairs), kThreads, 0, stream>>>(scores, dp, lse + row, delta + row, weights, gradients,
                                                  factor, pairs, n);
    multiply({gradients, false}, {k + at_k, false}, dq + at_q, heads, queries, d, n, stream);
    multiply({gradients, true}, {q + at_q, false}, dk + at_k, heads, n, d, queries, stream);
    multiply({weights, true}, {dout + at_q, false}, dv + at_k, heads, n, d, queries, stream);
  }
}
