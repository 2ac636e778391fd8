// Native baseline: C = A * B^T, bf16 with sums in fp32, by cuBLAS.
//
// On the emulated backend there is no cuBLAS; a plain tiled kernel stands in, and its label says so. Emulated
// times never count, so nothing is lost but the name.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#ifndef CAPSTONE_EMULATED

#include <cublas_v2.h>

#include <stdexcept>
#include <string>

namespace {

// What NVIDIA recommends from Hopper on (cublasSetWorkspace).
constexpr size_t kCublasWorkspace = size_t{32} << 20;

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

}  // namespace

extern "C" const char* baseline_label() { return "cuBLAS GEMM, bf16, sums in fp32"; }

extern "C" size_t workspace_bytes(int64_t /*m*/, int64_t /*k*/, int64_t /*n*/) { return kCublasWorkspace; }

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* b /*[n,k]*/,
                       __nv_bfloat16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n, void* workspace,
                       cudaStream_t stream) {
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), stream), "cublasSetStream");  // also resets the workspace: first
  check(cublasSetWorkspace(handle(), workspace, kCublasWorkspace), "cublasSetWorkspace");
  // cuBLAS is column-major, and a row-major matrix read that way is its transpose: C^T = B * A^T.
  check(cublasGemmEx_64(handle(), CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, b, CUDA_R_16BF, k, a, CUDA_R_16BF,
                        k, &zero, c, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

#else

namespace {

constexpr int kTile = 16;

__global__ void tiled(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b,
                      __nv_bfloat16* __restrict__ c, int64_t m, int64_t k, int64_t n) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const int64_t b_row = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.y;
  float sum = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kTile) {
    const int64_t p = k0 + threadIdx.x;
    a_tile[threadIdx.y][threadIdx.x] = row < m && p < k ? __bfloat162float(a[row * k + p]) : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = b_row < n && p < k ? __bfloat162float(b[b_row * k + p]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * b_tile[threadIdx.x][i];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = __float2bfloat16(sum);
}

}  // namespace

extern "C" const char* baseline_label() { return "native tiled GEMM, bf16 (emulated: stands in for cuBLAS)"; }

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* b /*[n,k]*/,
                       __nv_bfloat16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile),
                  static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(a, b, c, m, k, n);
}

#endif
