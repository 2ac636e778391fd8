// Native baseline: y = A x, bf16 with sums in fp32, by cuBLAS (a matrix product with one column).
//
// On the emulated backend there is no cuBLAS; a kernel with a warp a row stands in, and its label says so.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#ifndef CAPSTONE_EMULATED

#include <cublas_v2.h>

#include <stdexcept>
#include <string>

namespace {

// What NVIDIA recommends for Hopper (cublasSetWorkspace); ample for older chips.
constexpr size_t kCublasWorkspace = size_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
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
  static const std::string label = "cuBLAS " + version() + " GEMM with one column, bf16, sums in fp32";
  return label.c_str();
}

extern "C" size_t workspace_bytes(int64_t /*m*/, int64_t /*k*/) { return kCublasWorkspace; }

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* x /*[k]*/, __nv_bfloat16* y /*[m]*/,
                       int64_t m, int64_t k, void* workspace, cudaStream_t stream) {
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), stream), "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), workspace, kCublasWorkspace), "cublasSetWorkspace");
  // cuBLAS is column-major, and a row-major matrix read that way is its transpose.
  check(cublasGemmEx_64(handle(), CUBLAS_OP_T, CUBLAS_OP_N, m, 1, k, &one, a, CUDA_R_16BF, k, x, CUDA_R_16BF, k, &zero, y,
                        CUDA_R_16BF, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

#else

namespace {

constexpr int kWarps = 8;

/// A warp a row.
__global__ void gemv(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ x,
                     __nv_bfloat16* __restrict__ y, int64_t m, int64_t k) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= m) return;
  float sum = 0;
  for (int64_t j = threadIdx.x % 32; j < k; j += 32) sum += __bfloat162float(a[row * k + j]) * __bfloat162float(x[j]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) y[row] = __float2bfloat16(sum);
}

}  // namespace

extern "C" const char* baseline_label() { return "native: a warp a row, bf16 (emulated: stands in for cuBLAS)"; }

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* x /*[k]*/, __nv_bfloat16* y /*[m]*/,
                       int64_t m, int64_t k, void* /*workspace*/, cudaStream_t stream) {
  gemv<<<static_cast<unsigned>((m + kWarps - 1) / kWarps), kWarps * 32, 0, stream>>>(a, x, y, m, k);
}

#endif
