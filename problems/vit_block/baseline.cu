// Native baseline: the block as an eager framework runs it, operator by operator: LayerNorm, product, bias, heads apart, scores, softmax, values, heads together …
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

__global__ void gelu_elements(float* v, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) v[i] = 0.5f * v[i] * (1 + erff(v[i] * 0.70710678f));
}

__global__ void add_elements(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ to, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) to[i] = a[i] + b[i];
}

/// to[row] = LayerNorm(from[row]) * gamma + beta. A warp a row, the mean first, then the squares about it.
__global__ void layer_norm(const float* __restrict__ from, const float* __restrict__ gamma, const float* __restrict__ beta, float* __restrict__ to, float eps, int64_t rows,
                           int64_t columns) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* own = from + row * columns;
  float sum = 0, squares = 0;
  for (int64_t i = lane; i < columns; i += 32) sum += own[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  const float mean = sum / static_cast<float>(columns);
  for (int64_t i = lane; i < columns; i += 32) squares += (own[i] - mean) * (own[i] - mean);
  for (int offset = 16; offset > 0; offset /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  const float inverse = rsqrtf(squares / static_cast<float>(columns) + eps);
  for (int64_t i = lane; i < columns; i += 32) to[row * columns + i] = (own[i] - mean) * inverse * gamma[i] + beta[i];
}

/// scores[row] becomes softmax(factor * scores[row]). One block a row.
__global__ void softmax_rows(float* scores, float factor, int64_t t) {
  __shared__ float partial[2][kWarps];
  float* row = scores + blockIdx.x * t;
  float maximum = -FLT_MAX, sum = 0;
  for (int64_t j = threadIdx.x; j < t; j += kThreads) maximum = fmaxf(maximum, row[j]);
  maximum = block_maximum(maximum, partial[0]);
  for (int64_t j = threadIdx.x; j < t; j += kThreads) sum += expf(factor * (row[j] - maximum));
  const float scale = 1 / block_sum(sum, partial[1]);
  for (int64_t j = threadIdx.x; j < t; j += kThreads) row[j] = expf(factor * (row[j] - maximum)) * scale;
}

size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Where the intermediate results lie.
struct Places {
  size_t normal, wide, parts, scores, attended, residual, library, bytes;
  Places(int64_t b, int64_t t, int64_t h, int64_t d, size_t library_bytes) {
    const size_t tokens = static_cast<size_t>(b) * static_cast<size_t>(t), narrow = tokens * static_cast<size_t>(h) * static_cast<size_t>(d) * sizeof(float);
    normal = 0;
    wide = round_up(narrow);
    parts = wide + round_up(4 * narrow);
    scores = parts + round_up(3 * narrow);
    attended = scores + round_up(tokens * static_cast<size_t>(t) * static_cast<size_t>(h) * sizeof(float));
    residual = attended + round_up(narrow);
    library = residual + round_up(narrow);
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

extern "C" void launch(const float* x /*[b,t,h*d]*/, const float* gamma_1 /*[h*d]*/, const float* beta_1 /*[h*d]*/, const float* w_qkv /*[3*h*d,h*d]*/,
                       const float* b_qkv /*[3*h*d]*/, const float* w_proj /*[h*d,h*d]*/, const float* b_proj /*[h*d]*/, const float* gamma_2 /*[h*d]*/,
                       const float* beta_2 /*[h*d]*/, const float* w_up /*[4*h*d,h*d]*/, const float* b_up /*[4*h*d]*/, const float* w_down /*[h*d,4*h*d]*/,
                       const float* b_down /*[h*d]*/, float* y /*[b,t,h*d]*/, float eps, int64_t b, int64_t t, int64_t h, int64_t d, void* workspace,
                       cudaStream_t stream) {
  const Places places(b, t, h, d, kLibraryBytes);
  char* base = static_cast<char*>(workspace);
  auto floats = [base](size_t at) { return reinterpret_cast<float*>(base + at); };
  float *normal = floats(places.normal), *wide = floats(places.wide), *parts = floats(places.parts), *scores = floats(places.scores);
  float *attended = floats(places.attended), *residual = floats(places.residual);
  const int64_t tokens = b * t, channels = h * d, all = tokens * channels;
  begin(base + places.library, stream);
  auto linear = [&](const float* from, const float* weight, const float* bias, float* to, int64_t outputs, int64_t inputs) {
    multiply({true, from, weight, to, 1, tokens, outputs, inputs}, stream);
    add_bias<<<blocks_for(tokens * outputs), kThreads, 0, stream>>>(to, bias, tokens * outputs, outputs);
  };
  layer_norm<<<blocks_for(tokens * 32), kThreads, 0, stream>>>(x, gamma_1, beta_1, normal, eps, tokens, channels);
  linear(normal, w_qkv, b_qkv, wide, 3 * channels, channels);
  heads_apart<<<blocks_for(3 * all), kThreads, 0, stream>>>(wide, parts, b, t, h, d);
  multiply({true, parts, parts + all, scores, b * h, t, t, d}, stream);
  softmax_rows<<<static_cast<unsigned>(b * h * t), kThreads, 0, stream>>>(scores, 1 / std::sqrt(static_cast<float>(d)), t);
  multiply({false, scores, parts + 2 * all, normal, b * h, t, d, t}, stream);
  heads_together<<<blocks_for(all), kThreads, 0, stream>>>(normal, attended, b, t, h, d);
  linear(attended, w_proj, b_proj, normal, channels, channels);
  add_elements<<<blocks_for(all), kThreads, 0, stream>>>(x, normal, residual, all);
  layer_norm<<<blocks_for(tokens * 32), kThreads, 0, stream>>>(residual, gamma_2, beta_2, normal, eps, tokens, channels);
  linear(normal, w_up, b_up, wide, 4 * channels, channels);
  gelu_elements<<<blocks_for(4 * all), kThreads, 0, stream>>>(wide, 4 * all);
  linear(wide, w_down, b_down, normal, channels, 4 * channels);
  add_elements<<<blocks_for(all), kThreads, 0, stream>>>(residual, normal, y, all);
}
