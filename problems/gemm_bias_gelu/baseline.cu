// Native baseline: C = gelu(A * B + bias), bf16 with sums in fp32, by cuBLASLt's epilogue GELU_BIAS.
//
// cuBLASLt applies the tanh form of GELU to its sums in fp32 and rounds once: the fused kernel that a library
// has. The algorithm is the first that its heuristic names. Where it names none, and on the emulated backend,
// a plain tiled kernel stands in; emulated times never count.
#include <cuda_bf16.h>
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

__device__ float gelu(float v) {
  return 0.5f * v * (1 + tanhf(0.79788456080286536f * (v + 0.044715f * v * v * v)));
}

__global__ void tiled(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b,
                      const __nv_bfloat16* __restrict__ bias, __nv_bfloat16* __restrict__ c, int64_t m,
                      int64_t k, int64_t n) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  float sum = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kTile) {
    const bool in_a = row < m && k0 + threadIdx.x < k, in_b = column < n && k0 + threadIdx.y < k;
    a_tile[threadIdx.y][threadIdx.x] = in_a ? __bfloat162float(a[row * k + k0 + threadIdx.x]) : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = in_b ? __bfloat162float(b[(k0 + threadIdx.y) * n + column]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n)
    c[row * n + column] = __float2bfloat16(gelu(sum + __bfloat162float(bias[column])));
}

void launch_tiled(const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* bias, __nv_bfloat16* c,
                  int64_t m, int64_t k, int64_t n, cudaStream_t stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile),
                  static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(a, b, bias, c, m, k, n);
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
/// is our B and the other way around, and the bias runs along its rows.
struct Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulHeuristicResult_t choice{};
  bool found = false;

  Plan(const __nv_bfloat16* bias, int64_t m, int64_t k, int64_t n) {
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
    check(cublasLtMatrixLayoutCreate(&first, CUDA_R_16BF, n, k, n), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&second, CUDA_R_16BF, k, m, k), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&result, CUDA_R_16BF, n, m, n), "cublasLtMatrixLayoutCreate");
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    // Sums of pieces of k are not to be rounded to bf16 in between.
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK & ~CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
    prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    int count = 0;
    found = cublasLtMatmulAlgoGetHeuristic(handle(), operation, first, second, result, result, preference, 1,
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
  template <class T>
  void prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
              T value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  }
};

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "cuBLASLt " + std::to_string(cublasLtGetVersion() / 10000) + "." +
                                   std::to_string(cublasLtGetVersion() / 100 % 100) +
                                   " GEMM with epilogue GELU_BIAS, bf16, sums in fp32";
  return label.c_str();
}

extern "C" size_t workspace_bytes(int64_t /*m*/, int64_t /*k*/, int64_t /*n*/) { return kWorkspace; }

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* b /*[k,n]*/,
                       const __nv_bfloat16* bias /*[n]*/, __nv_bfloat16* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* workspace, cudaStream_t stream) {
  const Plan plan(bias, m, k, n);
  if (!plan.found) return launch_tiled(a, b, bias, c, m, k, n, stream);
  const float one = 1, zero = 0;
  check(cublasLtMatmul(handle(), plan.operation, &one, b, plan.first, a, plan.second, &zero, c, plan.result,
                       c, plan.result, &plan.choice.algo, workspace, kWorkspace, stream),
        "cublasLtMatmul");
}

#else

extern "C" const char* baseline_label() {
  return "native tiled GEMM with bias and GELU, bf16 (emulated: stands in for cuBLASLt)";
}

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* b /*[k,n]*/,
                       const __nv_bfloat16* bias /*[n]*/, __nv_bfloat16* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  launch_tiled(a, b, bias, c, m, k, n, stream);
}

#endif
