// Native baseline: C = A * B, fp32, by cuBLAS with TF32 off.
//
// On the emulated backend there is no cuBLAS; a plain tiled kernel stands in, and its label says so. Emulated times
// never count, so nothing is lost but the name.
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

std::string version() {
  int major = 0, minor = 0;
  check(cublasGetProperty(MAJOR_VERSION, &major), "cublasGetProperty");
  check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "cuBLAS " + version() + " SGEMM, fp32 (TF32 off)";
  return label.c_str();
}

extern "C" size_t workspace_bytes(int64_t /*m*/, int64_t /*k*/, int64_t /*n*/) { return kCublasWorkspace; }

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* workspace, cudaStream_t stream) {
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), stream), "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), workspace, kCublasWorkspace), "cublasSetWorkspace");
  // cuBLAS is column-major, and a row-major matrix read that way is its transpose: C^T = B^T * A^T.
  check(cublasSgemm_64(handle(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n), "cublasSgemm");
}

#else  // CAPSTONE_EMULATED

namespace {

constexpr int kTile = 16;

__global__ void tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int64_t m,
                      int64_t k, int64_t n) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  float sum = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kTile) {
    a_tile[threadIdx.y][threadIdx.x] = row < m && k0 + threadIdx.x < k ? a[row * k + k0 + threadIdx.x] : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = k0 + threadIdx.y < k && column < n ? b[(k0 + threadIdx.y) * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

}  // namespace

extern "C" const char* baseline_label() { return "native tiled SGEMM, fp32 (emulated: stands in for cuBLAS)"; }

extern "C" void launch(const float* a /*[m,k]*/, const float* b /*[k,n]*/, float* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(a, b, c, m, k, n);
}

#endif
