// Native baseline: causal attention as an eager framework runs it: scores, softmax, values, each by its own launches.
//
// The products are cuBLAS's, on tensor cores, scores in fp32. On the emulated backend there is no cuBLAS; plain kernels stand
// in, and the label says so. Emulated times never count, so nothing is lost but the name.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace {

constexpr bool kCausal = true;
constexpr int kThreads = 256, kWarps = kThreads / 32;

struct Maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Combines the values of all threads; every thread gets the result. `partial` must not be in use.
template <class Combine>
__device__ float block_reduce(float v, float* partial, Combine combine) {
  for (int offset = 16; offset > 0; offset /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, offset));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[0];
  for (int warp = 1; warp < kWarps; ++warp) v = combine(v, partial[warp]);
  return v;
}

/// weights[row] = softmax(factor * scores[row]) over the keys that the query sees; the others get 0. One block a row.
__global__ void softmax_rows(const float* __restrict__ scores, __half* __restrict__ weights, float factor, int64_t n) {
  __shared__ float partial[2][kWarps];
  const int64_t row = blockIdx.x, keys = kCausal ? row % n + 1 : n;
  const float* from = scores + row * n;
  float maximum = -INFINITY, sum = 0;
  for (int64_t j = threadIdx.x; j < keys; j += kThreads) maximum = fmaxf(maximum, from[j]);
  maximum = block_reduce(maximum, partial[0], Maximum());
  for (int64_t j = threadIdx.x; j < keys; j += kThreads) sum += expf(factor * (from[j] - maximum));
  const float scale = 1 / block_reduce(sum, partial[1], Sum());
  for (int64_t j = threadIdx.x; j < n; j += kThreads)
    weights[row * n + j] = __float2half(j < keys ? expf(factor * (from[j] - maximum)) * scale : 0.0f);
}

size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

/// How many heads' scores and weights exist at a time: as many as 4 GiB hold, at least one.
int64_t heads_at_once(int64_t h, int64_t n) {
  const int64_t fit = (int64_t{4} << 30) / (n * n * static_cast<int64_t>(sizeof(float) + sizeof(__half)));
  return fit < 1 ? 1 : fit < h ? fit : h;
}

/// Where scores, weights and the library's own workspace lie.
struct Places {
  size_t weights, library, bytes;
  Places(int64_t h, int64_t n, size_t library_bytes) {
    const size_t pairs = static_cast<size_t>(h) * static_cast<size_t>(n) * static_cast<size_t>(n);
    weights = round_up(pairs * sizeof(float));
    library = weights + round_up(pairs * sizeof(__half));
    bytes = library + library_bytes;
  }
};

}  // namespace

#ifndef CAPSTONE_EMULATED

#include <cublas_v2.h>

#include <stdexcept>
#include <string>

namespace {

// What NVIDIA recommends for Hopper (cublasSetWorkspace); ample for older chips.
constexpr size_t kLibraryBytes = size_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
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
  check(cublasSetStream(handle(), stream), "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), workspace, kLibraryBytes), "cublasSetWorkspace");
}

// cuBLAS is column-major, and a row-major matrix read that way is its transpose: S^T = K Q^T, O^T = V^T W^T.
void scores_of(const __half* q, const __half* k, float* scores, int64_t h, int64_t n, int64_t d, cudaStream_t) {
  const float one = 1, zero = 0;
  check(cublasGemmStridedBatchedEx_64(handle(), CUBLAS_OP_T, CUBLAS_OP_N, n, n, d, &one, k, CUDA_R_16F, d, n * d, q, CUDA_R_16F,
                                      d, n * d, &zero, scores, CUDA_R_32F, n, n * n, h, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
}

void values_of(const __half* weights, const __half* v, __half* o, int64_t h, int64_t n, int64_t d, cudaStream_t) {
  const float one = 1, zero = 0;
  check(cublasGemmStridedBatchedEx_64(handle(), CUBLAS_OP_N, CUBLAS_OP_N, d, n, n, &one, v, CUDA_R_16F, d, n * d, weights,
                                      CUDA_R_16F, n, n * n, &zero, o, CUDA_R_16F, d, n * d, h, CUBLAS_COMPUTE_32F,
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
  static const std::string label = "native eager: cuBLAS " + version() + ", softmax, cuBLAS, fp16";
  return label.c_str();
}

#else

namespace {

constexpr size_t kLibraryBytes = 0;

void begin(void*, cudaStream_t) {}

/// One score a thread.
__global__ void plain_scores(const __half* q, const __half* k, float* scores, int64_t pairs, int64_t n, int64_t d) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= pairs) return;
  const __half *left = q + i / n * d, *right = k + (i / (n * n) * n + i % n) * d;
  float sum = 0;
  for (int64_t x = 0; x < d; ++x) sum += __half2float(left[x]) * __half2float(right[x]);
  scores[i] = sum;
}

/// One result a thread.
__global__ void plain_values(const __half* weights, const __half* v, __half* o, int64_t results, int64_t n, int64_t d) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= results) return;
  const __half *left = weights + i / d * n, *right = v + i / (n * d) * n * d + i % d;
  float sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += __half2float(left[j]) * __half2float(right[j * d]);
  o[i] = __float2half(sum);
}

void scores_of(const __half* q, const __half* k, float* scores, int64_t h, int64_t n, int64_t d, cudaStream_t stream) {
  const int64_t pairs = h * n * n;
  plain_scores<<<static_cast<unsigned>((pairs + kThreads - 1) / kThreads), kThreads, 0, stream>>>(q, k, scores, pairs, n, d);
}

void values_of(const __half* weights, const __half* v, __half* o, int64_t h, int64_t n, int64_t d, cudaStream_t stream) {
  const int64_t results = h * n * d;
  plain_values<<<static_cast<unsigned>((results + kThreads - 1) / kThreads), kThreads, 0, stream>>>(weights, v, o, results, n, d);
}

}  // namespace

extern "C" const char* baseline_label() { return "native eager: three kernels, fp16 (emulated: stand in for cuBLAS)"; }

#endif

extern "C" size_t workspace_bytes(int64_t h, int64_t n, int64_t /*d*/) {
  return Places(heads_at_once(h, n), n, kLibraryBytes).bytes;
}

extern "C" void launch(const __half* q /*[h,n,d]*/, const __half* k /*[h,n,d]*/, const __half* v /*[h,n,d]*/,
                       __half* o /*[h,n,d]*/, int64_t h, int64_t n, int64_t d, void* workspace, cudaStream_t stream) {
  const int64_t most = heads_at_once(h, n);
  const Places places(most, n, kLibraryBytes);
  float* scores = static_cast<float*>(workspace);
  __half* weights = reinterpret_cast<__half*>(static_cast<char*>(workspace) + places.weights);
  begin(static_cast<char*>(workspace) + places.library, stream);
  for (int64_t first = 0; first < h; first += most) {
    const int64_t heads = first + most < h ? most : h - first, at = first * n * d;
    scores_of(q + at, k + at, scores, heads, n, d, stream);
    softmax_rows<<<static_cast<unsigned>(heads * n), kThreads, 0, stream>>>(scores, weights,
                                                                            1 / std::sqrt(static_cast<float>(d)), n);
    values_of(weights, v + at, o + at, heads, n, d, stream);
  }
}
