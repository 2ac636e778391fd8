// Native baseline: the block as an eager framework runs it: product, heads apart, scores, mask and softmax, values, heads together, product.
//
// The products are cuBLAS's in fp32 (TF32 off). On the emulated backend there is no cuBLAS; a plain kernel stands in, and the label says so.
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

__global__ void add_bias(float* __restrict__ to, const float* __restrict__ bias, int64_t count, int64_t columns) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) to[i] += bias[i % columns];
}

/// qkv [b, t, 3, h, d] -> parts [3, b, h, t, d]
__global__ void heads_apart(const float* __restrict__ qkv, float* __restrict__ parts, int64_t b, int64_t t, int64_t h, int64_t d) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, all = b * t * h * d;
  if (i >= 3 * all) return;
  const int64_t x = i % d, token = i / d % t, head = i / (d * t) % h, batch = i % all / (d * t * h), part = i / all;
  parts[i] = qkv[(((batch * t + token) * 3 + part) * h + head) * d + x];
}

/// from [b, h, t, d] -> to [b, t, h, d]
__global__ void heads_together(const float* __restrict__ from, float* __restrict__ to, int64_t b, int64_t t, int64_t h, int64_t d) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= b * t * h * d) return;
  const int64_t x = i % d, head = i / d % h, token = i / (d * h) % t, batch = i / (d * h * t);
  to[i] = from[((batch * h + head) * t + token) * d + x];
}

__device__ float block_maximum(float v, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[0];
  for (int warp = 1; warp < kWarps; ++warp) v = fmaxf(v, partial[warp]);
  return v;
}
__device__ float block_sum(float v, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[0];
  for (int warp = 1; warp < kWarps; ++warp) v += partial[warp];
  return v;
}

/// scores[row] becomes softmax(factor * scores[row]) over the keys that the query sees, and 0 behind them. One block a row.
__global__ void softmax_rows(float* scores, float factor, int64_t t) {
  __shared__ float partial[2][kWarps];
  float* row = scores + blockIdx.x * t;
  const int64_t keys = blockIdx.x % t + 1;
  float maximum = -FLT_MAX, sum = 0;
  for (int64_t j = threadIdx.x; j < keys; j += kThreads) maximum = fmaxf(maximum, row[j]);
  maximum = block_maximum(maximum, partial[0]);
  for (int64_t j = threadIdx.x; j < keys; j += kThreads) sum += expf(factor * (row[j] - maximum));
  const float scale = 1 / block_sum(sum, partial[1]);
  for (int64_t j = threadIdx.x; j < t; j += kThreads) row[j] = j < keys ? expf(factor * (row[j] - maximum)) * scale : 0.0f;
}

size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Where the intermediate results lie.
struct Places {
  size_t parts, scores, attended, library, bytes;
  Places(int64_t b, int64_t t, int64_t h, int64_t d, size_t library_bytes) {
    const size_t tokens = static_cast<size_t>(b) * static_cast<size_t>(t), channels = static_cast<size_t>(h) * static_cast<size_t>(d);
    parts = round_up(3 * tokens * channels * sizeof(float));
    scores = parts + round_up(3 * tokens * channels * sizeof(float));
    attended = scores + round_up(tokens * static_cast<size_t>(t) * static_cast<size_t>(h) * sizeof(float));
    library = attended + round_up(tokens * channels * sizeof(float));
    bytes = library + library_bytes;
  }
};

/// `batch` products c[m, n] = a[m, k] times b, which is [n, k] where `rows_are_outputs`, else [k, n].
struct Product {
  bool rows_are_outputs;
  const float *a, *b;
  float* c;
  int64_t batch, m, n, k;
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
    check(cublasSetMathMode(h, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode");  // fp32 proper, no TF32
    return h;
  }();
  return created;
}

void begin(void* workspace, cudaStream_t stream) {
  check(cublasSetStream(handle(), stream), "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), workspace, kLibraryBytes), "cublasSetWorkspace");
}

// cuBLAS is column-major, and a row-major matrix read that way is its transpose: C^T = B^T A^T.
void multiply(const Product& p, cudaStream_t) {
  const float one = 1, zero = 0;
  check(cublasSgemmStridedBatched_64(handle(), p.rows_are_outputs ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, p.n, p.m, p.k, &one, p.b, p.rows_are_outputs ? p.k : p.n,
                                     p.n * p.k, p.a, p.k, p.m * p.k, &zero, p.c, p.n, p.m * p.n, p.batch),
        "cublasSgemmStridedBatched");
}

std::string version() {
  int major = 0, minor = 0;
  check(cublasGetProperty(MAJOR_VERSION, &major), "cublasGetProperty");
  check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "native eager: cuBLAS " + version() + " products, softmax over scores in memory, fp32 (TF32 off)";
  return label.c_str();
}

#else

namespace {

constexpr size_t kLibraryBytes = 0;

void begin(void*, cudaStream_t) {}

/// One result a thread.
__global__ void plain_product(Product p) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.batch * p.m * p.n) return;
  const int64_t column = i % p.n, row = i / p.n % p.m, batch = i / (p.n * p.m);
  const float *a = p.a + (batch * p.m + row) * p.k, *b = p.b + batch * p.n * p.k;
  float sum = 0;
  for (int64_t x = 0; x < p.k; ++x) sum += a[x] * (p.rows_are_outputs ? b[column * p.k + x] : b[x * p.n + column]);
  p.c[i] = sum;
}

void multiply(const Product& p, cudaStream_t stream) { plain_product<<<blocks_for(p.batch * p.m * p.n), kThreads, 0, stream>>>(p); }

}  // namespace

extern "C" const char* baseline_label() { return "native eager: products, softmax over scores in memory, fp32 (emulated: stand in for cuBLAS)"; }

#endif

extern "C" size_t workspace_bytes(int64_t b, int64_t t, int64_t h, int64_t d) { return Places(b, t, h, d, kLibraryBytes).bytes; }

extern "C" void launch(const float* x /*[b,t,h*d]*/, const float* w_qkv /*[3*h*d,h*d]*/, const float* b_qkv /*[3*h*d]*/, const float* w_proj /*[h*d,h*d]*/,
                       const float* b_proj /*[h*d]*/, float* y /*[b,t,h*d]*/, int64_t b, int64_t t, int64_t h, int64_t d, void* workspace,
                       cudaStream_t stream) {
  const Places places(b, t, h, d, kLibraryBytes);
  char* base = static_cast<char*>(workspace);
  auto floats = [base](size_t at) { return reinterpret_cast<float*>(base + at); };
  float *qkv = floats(0), *parts = floats(places.parts), *scores = floats(places.scores), *attended = floats(places.attended);
  const int64_t tokens = b * t, channels = h * d, all = tokens * channels;
  begin(base + places.library, stream);
  multiply({true, x, w_qkv, qkv, 1, tokens, 3 * channels, channels}, stream);
  add_bias<<<blocks_for(3 * all), kThreads, 0, stream>>>(qkv, b_qkv, 3 * all, 3 * channels);
  heads_apart<<<blocks_for(3 * all), kThreads, 0, stream>>>(qkv, parts, b, t, h, d);
  multiply({true, parts, parts + all, scores, b * h, t, t, d}, stream);
  softmax_rows<<<static_cast<unsigned>(b * h * t), kThreads, 0, stream>>>(scores, 1 / std::sqrt(static_cast<float>(d)), t);
  multiply({false, scores, parts + 2 * all, qkv, b * h, t, d, t}, stream);  // qkv is free again
  heads_together<<<blocks_for(all), kThreads, 0, stream>>>(qkv, attended, b, t, h, d);
  multiply({true, attended, w_proj, y, 1, tokens, channels, channels}, stream);
  add_bias<<<blocks_for(all), kThreads, 0, stream>>>(y, b_proj, all, channels);
}
