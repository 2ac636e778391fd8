// Native baseline: C = A * B^T with block scales, fp8 with promoted sums, by cuBLASLt's block mode (CUDA 12.9).
//
// cuBLASLt takes the scales of A column by column, and rows of those of B that are a multiple of four long, so a
// first kernel brings them there. Sizes that it does not take (m has to be a multiple of four), chips other than
// Hopper, and the emulated backend have a plain tiled kernel instead; emulated times never count.
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

constexpr int kTile = 16, kBlock = 128;

__global__ void tiled(const __nv_fp8_e4m3* __restrict__ a, const float* __restrict__ sfa, const __nv_fp8_e4m3* __restrict__ b,
                      const float* __restrict__ sfb, __nv_bfloat16* __restrict__ c, int64_t m, int64_t k, int64_t n) {
  __shared__ float a_tile[kTile][kTile + 1], b_tile[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const int64_t b_row = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.y, blocks = (k + kBlock - 1) / kBlock;
  float sum = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kTile) {  // a tile lies in one block, and k is a multiple of 16
    const int64_t p = k0 + threadIdx.x, block = k0 / kBlock;
    a_tile[threadIdx.y][threadIdx.x] = row < m ? static_cast<float>(a[row * k + p]) * sfa[row * blocks + block] : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] =
        b_row < n ? static_cast<float>(b[b_row * k + p]) * sfb[b_row / kBlock * blocks + block] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * b_tile[threadIdx.x][i];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = __float2bfloat16(sum);
}

void launch_tiled(const __nv_fp8_e4m3* a, const float* sfa, const __nv_fp8_e4m3* b, const float* sfb, __nv_bfloat16* c, int64_t m,
                  int64_t k, int64_t n, cudaStream_t stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(a, sfa, b, sfb, c, m, k, n);
}

}  // namespace

#ifndef CAPSTONE_EMULATED

namespace {

// What NVIDIA recommends for Hopper; ample for older chips.
constexpr size_t kWorkspace = size_t{32} << 20;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + cublasLtGetStatusString(status));
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

int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }
int64_t blocks_of(int64_t extent) { return (extent + kBlock - 1) / kBlock; }
int64_t bytes_for_sfa(int64_t m, int64_t k) { return round_up(m * blocks_of(k) * 4, 256); }
int64_t bytes_for_sfb(int64_t k, int64_t n) { return round_up(blocks_of(n) * round_up(blocks_of(k), 4) * 4, 256); }

/// The scales of A by columns; those of B in rows of `pitch`.
__global__ void lay_out(const float* __restrict__ sfa, const float* __restrict__ sfb, float* __restrict__ a_out,
                        float* __restrict__ b_out, int64_t m, int64_t blocks, int64_t b_rows, int64_t pitch) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < m * blocks) a_out[i] = sfa[i % m * blocks + i / m];
  if (i < b_rows * pitch) b_out[i] = i % pitch < blocks ? sfb[i / pitch * blocks + i % pitch] : 0.0f;
}

/// A product as cuBLASLt is asked for it, and what it chose. Row-major matrices are its transposes, so its A is
/// our B and the other way around.
struct Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulHeuristicResult_t choice{};
  bool found = false;

  Plan(int64_t m, int64_t k, int64_t n, const float* sfa, const float* sfb) {
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, sfb);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, sfa);
    check(cublasLtMatrixLayoutCreate(&first, CUDA_R_8F_E4M3, k, n, k), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&second, CUDA_R_8F_E4M3, k, m, k), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&result, CUDA_R_16BF, n, m, n), "cublasLtMatrixLayoutCreate");
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof kWorkspace),
          "cublasLtMatmulPreferenceSetAttribute");
    int count = 0;
    found = m % 4 == 0 && cublasLtMatmulAlgoGetHeuristic(handle(), operation, first, second, result, result, preference, 1,
                                                         &choice, &count) == CUBLAS_STATUS_SUCCESS && count > 0;
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
    check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
};

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label =
      "cuBLASLt " + std::to_string(cublasLtGetVersion() / 10000) + "." + std::to_string(cublasLtGetVersion() / 100 % 100) +
      " GEMM, fp8 with block scales";
  return label.c_str();
}

extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t n) {
  return kWorkspace + static_cast<size_t>(bytes_for_sfa(m, k) + bytes_for_sfb(k, n));
}

extern "C" void launch(const __nv_fp8_e4m3* a /*[m,k]*/, const float* sfa /*[m,ceil_div(k, 128)]*/, const __nv_fp8_e4m3* b /*[n,k]*/,
                       const float* sfb /*[ceil_div(n, 128),ceil_div(k, 128)]*/, __nv_bfloat16* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* workspace, cudaStream_t stream) {
  uint8_t* const memory = static_cast<uint8_t*>(workspace);
  float* const a_scales = reinterpret_cast<float*>(memory + kWorkspace);
  float* const b_scales = reinterpret_cast<float*>(memory + kWorkspace + bytes_for_sfa(m, k));
  const Plan plan(m, k, n, a_scales, b_scales);
  if (!plan.found) return launch_tiled(a, sfa, b, sfb, c, m, k, n, stream);

  const int64_t blocks = blocks_of(k), pitch = round_up(blocks, 4), b_rows = blocks_of(n);
  const int64_t count = m * blocks > b_rows * pitch ? m * blocks : b_rows * pitch;
  lay_out<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(sfa, sfb, a_scales, b_scales, m, blocks, b_rows, pitch);
  const float one = 1, zero = 0;
  check(cublasLtMatmul(handle(), plan.operation, &one, b, plan.first, a, plan.second, &zero, c, plan.result, c, plan.result,
                       &plan.choice.algo, workspace, kWorkspace, stream),
        "cublasLtMatmul");
}

#else

extern "C" const char* baseline_label() { return "native tiled GEMM, fp8 (emulated: stands in for cuBLASLt)"; }

extern "C" void launch(const __nv_fp8_e4m3* a /*[m,k]*/, const float* sfa /*[m,ceil_div(k, 128)]*/, const __nv_fp8_e4m3* b /*[n,k]*/,
                       const float* sfb /*[ceil_div(n, 128),ceil_div(k, 128)]*/, __nv_bfloat16* c /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* /*workspace*/, cudaStream_t stream) {
  launch_tiled(a, sfa, b, sfb, c, m, k, n, stream);
}

#endif
