// Native baseline: C = A * B^T with a scale for each matrix, by cuBLASLt with fast sums (all of k in the
// tensor cores).
//
// Sizes that it does not take (n has to be a multiple of 16), chips older than Ada, and the emulated backend
// have a plain tiled kernel instead; emulated times never count.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#ifndef CAPSTONE_EMULATED
#include <cublasLt.h>

#include <stdexcept>
#include <string>
#endif

namespace {

constexpr int kTile = 16;

__global__ void tiled(const __nv_fp8_e4m3* __restrict__ a, const float* __restrict__ sa,
                      const __nv_fp8_e4m3* __restrict__ b, const float* __restrict__ sb,
                      __nv_bfloat16* __restrict__ c, int64_t m, int64_t k, int64_t n) {
  __shared__ float a_tile[kTile][kTile + 1], b_tile[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const int64_t b_row = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.y;
  float sum = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kTile) {  // k is a multiple of 16
    const int64_t p = k0 + threadIdx.x;
    a_tile[threadIdx.y][threadIdx.x] = row < m ? static_cast<float>(a[row * k + p]) : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = b_row < n ? static_cast<float>(b[b_row * k + p]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * b_tile[threadIdx.x][i];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = __float2bfloat16(sum * *sa * *sb);
}

void launch_tiled(const __nv_fp8_e4m3* a, const float* sa, const __nv_fp8_e4m3* b, const float* sb,
                  __nv_bfloat16* c, int64_t m, int64_t k, int64_t n, cudaStream_t stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile),
                  static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(a, sa, b, sb, c, m, k, n);
}

}  // namespace

#ifndef CAPSTONE_EMULATED

namespace {

// What NVIDIA recommends for Hopper; ample for older chips.
constexpr size_t kWorkspace = size_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasLtGetStatusString(status));
}

/// One handle for the life of the process: creating it costs far more than any product.
cublasLtHandle_t handle() {
  static const cublasLtHandle_t created = [] {
    cublasLtHandle_t h = nullptr;
    check(cublasLtCreate(&h), "cublasLtCreate");
    return h;
  }();
  return created;
}

/// A product as cuBLASLt is asked for it, and what it chose. Row-major matrices are its transposes, so its A
/// is our B and the other way around.
struct Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulHeuristicResult_t choice{};
  bool found = false;

  Plan(int64_t m, int64_t k, int64_t n, const float* sa, const float* sb) {
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, sb);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, sa);
    check(cublasLtMatrixLayoutCreate(&first, CUDA_R_8F_E4M3, k, n, k), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&second, CUDA_R_8F_E4M3, k, m, k), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&result, CUDA_R_16BF, n, m, n), "cublasLtMatrixLayoutCreate");
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &kWorkspace, sizeof kWorkspace),
          "cublasLtMatmulPreferenceSetAttribute");
    int count = 0;
    found = n % 16 == 0 &&
            cublasLtMatmulAlgoGetHeuristic(handle(), operation, first, second, result, result, preference, 1,
                                           &choice, &count) == CUBLAS_STATUS_SUCCESS &&
            count > 0;
    cublasLtMatmulPreferenceDestroy(preference);
  }
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {first, second, result}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(operation);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }
};

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "cuBLASLt " + std::to_string(cublasLtGetVersion() / 10000) + "." +
                                   std::to_string(cublasLtGetVersion() / 100 % 100) +
                                   " GEMM, fp8 with fast sums";
  return label.c_str();
}

extern "C" size_t workspace_bytes(int64_t, int64_t, int64_t) { return kWorkspace; }

extern "C" void launch(const __nv_fp8_e4m3* a /*[m,k]*/, const float* sa /*[1]*/,
                       const __nv_fp8_e4m3* b /*[n,k]*/, const float* sb /*[1]*/, __nv_bfloat16* c /*[m,n]*/,
                       int64_t m, int64_t k, int64_t n, void* workspace, cudaStream_t stream) {
  const Plan plan(m, k, n, sa, sb);
  if (!plan.found) return launch_tiled(a, sa, b, sb, c, m, k, n, stream);
  const float one = 1, zero = 0;
  check(cublasLtMatmul(handle(), plan.operation, &one, b, plan.first, a, plan.second, &zero, c, plan.result,
                       c, plan.result, &plan.choice.algo, workspace, kWorkspace, stream),
        "cublasLtMatmul");
}

#else

extern "C" const char* baseline_label() {
  return "native tiled GEMM, fp8 (emulated: stands in for cuBLASLt)";
}

extern "C" void launch(const __nv_fp8_e4m3* a /*[m,k]*/, const float* sa /*[1]*/,
                       const __nv_fp8_e4m3* b /*[n,k]*/, const float* sb /*[1]*/, __nv_bfloat16* c /*[m,n]*/,
                       int64_t m, int64_t k, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  launch_tiled(a, sa, b, sb, c, m, k, n, stream);
}

#endif
