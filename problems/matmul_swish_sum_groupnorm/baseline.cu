// Native baseline: the chain as an eager framework runs it, fp32: cuBLAS with TF32 off, then one kernel an operator. The linear
// bias costs nothing (it is added where sigmoid and multiplication read), as in a library's epilogue.
//
// On the emulated backend there is no cuBLAS; a plain kernel stands in, and the label says so. Emulated times never count, so
// nothing is lost but the name.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256, kGroup = 32;

/// s = sigmoid(z + linear_bias)
__global__ void sigmoid(const float* __restrict__ z, const float* __restrict__ linear_bias, float* __restrict__ s, int64_t count,
                        int64_t channels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) s[i] = 1 / (1 + expf(-(z[i] + linear_bias[i % channels])));
}

/// t = (z + linear_bias) * s
__global__ void multiply(const float* __restrict__ z, const float* __restrict__ linear_bias, const float* __restrict__ s,
                         float* __restrict__ t, int64_t count, int64_t channels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) t[i] = (z[i] + linear_bias[i % channels]) * s[i];
}

/// t += bias, into u
__global__ void add(const float* __restrict__ t, const float* __restrict__ bias, float* __restrict__ u, int64_t count,
                    int64_t channels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) u[i] = t[i] + bias[i % channels];
}

__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

/// One warp a group of 32 channels; the grid covers whole blocks' worth of groups or leaves warp by warp.
__global__ void group_norm(const float* __restrict__ u, const float* __restrict__ gamma, const float* __restrict__ beta,
                           float* __restrict__ y, float eps, int64_t count, int64_t channels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;  // count is a multiple of 32: a whole warp leaves together
  const float v = u[i], mean = warp_sum(v) / kGroup, variance = warp_sum((v - mean) * (v - mean)) / kGroup;
  y[i] = (v - mean) * rsqrtf(variance + eps) * gamma[i % channels] + beta[i % channels];
}

size_t round_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

size_t tensor_bytes(int64_t rows, int64_t channels) {
  return round_up(static_cast<size_t>(rows) * static_cast<size_t>(channels) * sizeof(float));
}

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
    check(cublasSetMathMode(h, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode");  // true fp32, whatever the environment says
    return h;
  }();
  return created;
}

/// z = x weight^T. cuBLAS is column-major, and a row-major matrix read that way is its transpose: Z^T = W X^T.
void product(const float* x, const float* weight, float* z, int64_t rows, int64_t k, int64_t channels, void* workspace,
             cudaStream_t stream) {
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), stream), "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), workspace, kLibraryBytes), "cublasSetWorkspace");
  check(cublasSgemm_64(handle(), CUBLAS_OP_T, CUBLAS_OP_N, channels, rows, k, &one, weight, k, x, k, &zero, z, channels),
        "cublasSgemm");
}

std::string version() {
  int major = 0, minor = 0;
  check(cublasGetProperty(MAJOR_VERSION, &major), "cublasGetProperty");
  check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "native eager: cuBLAS " + version() + " SGEMM, fp32 (TF32 off) + 4 kernels";
  return label.c_str();
}

#else

namespace {

constexpr size_t kLibraryBytes = 0;

/// One element a thread.
__global__ void plain_product(const float* x, const float* weight, float* z, int64_t count, int64_t k, int64_t channels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (int64_t p = 0; p < k; ++p) sum += x[i / channels * k + p] * weight[i % channels * k + p];
  z[i] = sum;
}

void product(const float* x, const float* weight, float* z, int64_t rows, int64_t k, int64_t channels, void*,
             cudaStream_t stream) {
  const int64_t count = rows * channels;
  plain_product<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, weight, z, count, k,
                                                                                                    channels);
}

}  // namespace

extern "C" const char* baseline_label() { return "native eager: product + 4 kernels, fp32 (emulated: stands in for cuBLAS)"; }

#endif

extern "C" size_t workspace_bytes(int64_t rows, int64_t /*k*/, int64_t channels) {
  return 2 * tensor_bytes(rows, channels) + kLibraryBytes;
}

extern "C" void launch(const float* x /*[rows,k]*/, const float* weight /*[channels,k]*/,
                       const float* linear_bias /*[channels]*/, const float* bias /*[channels]*/,
                       const float* gamma /*[channels]*/, const float* beta /*[channels]*/, float* y /*[rows,channels]*/,
                       float eps, int64_t rows, int64_t k, int64_t channels, void* workspace, cudaStream_t stream) {
  char* at = static_cast<char*>(workspace);
  float* first = reinterpret_cast<float*>(at);
  float* second = reinterpret_cast<float*>(at + tensor_bytes(rows, channels));
  const int64_t count = rows * channels;
  const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  product(x, weight, first, rows, k, channels, at + 2 * tensor_bytes(rows, channels), stream);
  sigmoid<<<blocks, kThreads, 0, stream>>>(first, linear_bias, second, count, channels);
  multiply<<<blocks, kThreads, 0, stream>>>(first, linear_bias, second, y, count, channels);
  add<<<blocks, kThreads, 0, stream>>>(y, bias, first, count, channels);
  group_norm<<<blocks, kThreads, 0, stream>>>(first, gamma, beta, y, eps, count, channels);
}
