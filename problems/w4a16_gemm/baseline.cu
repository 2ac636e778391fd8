// Native baseline: weights dequantised to bf16 by prepare(), once, and cuBLAS. That is what a server without
// quantisation runs: four times the memory, and no decoding at all.
//
// On the emulated backend there is no cuBLAS; a kernel with a thread for each element stands in, and its
// label says so.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 256, kGroup = 128;

__global__ void dequantise(const uint8_t* __restrict__ w, const __nv_bfloat16* __restrict__ scales,
                           __nv_bfloat16* __restrict__ weights, int64_t count) {
  const int64_t i =
      static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;  // a group has 128, so rows do not matter
  if (i >= count) return;
  const unsigned code = i % 2 == 0 ? w[i / 2] & 15u : w[i / 2] >> 4;
  weights[i] = __float2bfloat16(static_cast<float>(static_cast<int>(code ^ 8u) - 8) *
                                __bfloat162float(scales[i / kGroup]));
}

}  // namespace

extern "C" size_t prepared_bytes(int64_t /*m*/, int64_t k, int64_t n) {
  return static_cast<size_t>(n * k) * sizeof(__nv_bfloat16);
}

extern "C" void prepare(const uint8_t* w /*[n,k]*/, const __nv_bfloat16* scales /*[n,k/128]*/, int64_t /*m*/,
                        int64_t k, int64_t n, void* prepared, cudaStream_t stream) {
  dequantise<<<static_cast<unsigned>((n * k + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      w, scales, static_cast<__nv_bfloat16*>(prepared), n * k);
}

#ifndef CAPSTONE_EMULATED

#include <cublas_v2.h>

#include <stdexcept>
#include <string>

namespace {

// What NVIDIA recommends for Hopper (cublasSetWorkspace); ample for older chips.
constexpr size_t kCublasWorkspace = size_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
}

/// One handle for the life of the process: creating it costs far more than a product.
cublasHandle_t handle() {
  static const cublasHandle_t created = [] {
    cublasHandle_t h = nullptr;
    check(cublasCreate(&h), "cublasCreate");
    // Sums of pieces of k are not to be rounded to bf16 in between.
    check(cublasSetMathMode(h, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION), "cublasSetMathMode");
    return h;
  }();
  return created;
}

std::string version() {
  int major = 0, minor = 0;
  check(cublasGetProperty(MAJOR_VERSION, &major), "cublasGetProperty");
  check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "cuBLAS " + version() + " GEMM, weights dequantised to bf16 beforehand";
  return label.c_str();
}

extern "C" size_t workspace_bytes(int64_t /*m*/, int64_t /*k*/, int64_t /*n*/) { return kCublasWorkspace; }

extern "C" void launch(const __nv_bfloat16* x /*[m,k]*/, const uint8_t* /*w [n,k]*/,
                       const __nv_bfloat16* /*scales [n,k/128]*/, __nv_bfloat16* y /*[m,n]*/, int64_t m,
                       int64_t k, int64_t n, const void* prepared, void* workspace, cudaStream_t stream) {
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), stream),
        "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), workspace, kCublasWorkspace), "cublasSetWorkspace");
  // cuBLAS is column-major, and a row-major matrix read that way is its transpose.
  check(cublasGemmEx_64(handle(), CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, prepared, CUDA_R_16BF, k, x,
                        CUDA_R_16BF, k, &zero, y, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

#else

namespace {

__global__ void product(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weights,
                        __nv_bfloat16* __restrict__ y, int64_t m, int64_t k, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= m * n) return;
  const __nv_bfloat16 *left = x + i / n * k, *right = weights + i % n * k;
  float sum = 0;
  for (int64_t p = 0; p < k; ++p) sum += __bfloat162float(left[p]) * __bfloat162float(right[p]);
  y[i] = __float2bfloat16(sum);
}

}  // namespace

extern "C" const char* baseline_label() {
  return "native: a thread an element, bf16 (emulated: stands in for cuBLAS)";
}

extern "C" void launch(const __nv_bfloat16* x /*[m,k]*/, const uint8_t* /*w [n,k]*/,
                       const __nv_bfloat16* /*scales [n,k/128]*/, __nv_bfloat16* y /*[m,n]*/, int64_t m,
                       int64_t k, int64_t n, const void* prepared, void* /*workspace*/, cudaStream_t stream) {
  product<<<static_cast<unsigned>((m * n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      x, static_cast<const __nv_bfloat16*>(prepared), y, m, k, n);
}

#endif
