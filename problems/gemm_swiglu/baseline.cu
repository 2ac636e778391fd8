// Native baseline: gate and up by cuBLASLt, and a kernel for SwiGLU, as serving libraries do it.
//
// The products write bf16 into the workspace; the kernel behind them reads both, 16 bytes at a time. On the
// emulated backend a plain tiled kernel stands in for cuBLASLt, and the label says so; emulated times never
// count.
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

constexpr int kThreads = 256;

/// A word holds two bf16, the first in its lower half; a bf16 is the upper half of a float.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ float gated(float gate, float up) { return gate / (1 + __expf(-gate)) * up; }
__device__ unsigned gated(unsigned gate, unsigned up) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(gated(low(gate), low(up)), gated(high(gate), high(up)));
  return reinterpret_cast<const unsigned&>(both);
}

/// Eight results a thread; n is a multiple of eight.
__global__ void __launch_bounds__(kThreads)
    swiglu(const uint4* __restrict__ gates, const uint4* __restrict__ ups, uint4* __restrict__ h,
           int64_t vectors) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const uint4 gate = gates[i], up = ups[i];
  h[i] = make_uint4(gated(gate.x, up.x), gated(gate.y, up.y), gated(gate.z, up.z), gated(gate.w, up.w));
}

void activate(const void* gates, const void* ups, __nv_bfloat16* h, int64_t m, int64_t n,
              cudaStream_t stream) {
  const int64_t vectors = m * n / 8;
  swiglu<<<static_cast<unsigned>((vectors + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      static_cast<const uint4*>(gates), static_cast<const uint4*>(ups), reinterpret_cast<uint4*>(h), vectors);
}

/// Bytes of gate or up, rounded up so that what lies behind them is 256-byte aligned, too.
size_t product_bytes(int64_t m, int64_t n) {
  return (static_cast<size_t>(m * n) * sizeof(__nv_bfloat16) + 255) / 256 * 256;
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

  Plan(int64_t m, int64_t k, int64_t n) {
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
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
    check(cublasLtMatmulAlgoGetHeuristic(handle(), operation, first, second, result, result, preference, 1,
                                         &choice, &count),
          "cublasLtMatmulAlgoGetHeuristic");
    cublasLtMatmulPreferenceDestroy(preference);
    if (count == 0) throw std::runtime_error("cuBLASLt names no algorithm");
  }
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {first, second, result}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(operation);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

 private:
  template <class T>
  void prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
              T value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  }
};

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "native: two cuBLASLt " + std::to_string(cublasLtGetVersion() / 10000) +
                                   "." + std::to_string(cublasLtGetVersion() / 100 % 100) +
                                   " GEMMs, bf16, then a SwiGLU kernel";
  return label.c_str();
}

extern "C" size_t workspace_bytes(int64_t m, int64_t /*k*/, int64_t n) {
  return 2 * product_bytes(m, n) + kWorkspace;
}

extern "C" void launch(const __nv_bfloat16* x /*[m,k]*/, const __nv_bfloat16* wg /*[k,n]*/,
                       const __nv_bfloat16* wu /*[k,n]*/, __nv_bfloat16* h /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* workspace, cudaStream_t stream) {
  char* const gates = static_cast<char*>(workspace);
  char* const ups = gates + product_bytes(m, n);
  const Plan plan(m, k, n);
  const float one = 1, zero = 0;
  const auto multiply = [&](const __nv_bfloat16* w, void* to) {
    check(
        cublasLtMatmul(handle(), plan.operation, &one, w, plan.first, x, plan.second, &zero, to, plan.result,
                       to, plan.result, &plan.choice.algo, ups + product_bytes(m, n), kWorkspace, stream),
        "cublasLtMatmul");
  };
  multiply(wg, gates);
  multiply(wu, ups);
  activate(gates, ups, h, m, n, stream);
}

#else

namespace {

constexpr int kTile = 16;

__global__ void tiled(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b,
                      __nv_bfloat16* __restrict__ c, int64_t m, int64_t k, int64_t n) {
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
  if (row < m && column < n) c[row * n + column] = __float2bfloat16(sum);
}

}  // namespace

extern "C" const char* baseline_label() {
  return "native: two tiled GEMMs, bf16, then a SwiGLU kernel (emulated: stand in for cuBLASLt)";
}

extern "C" size_t workspace_bytes(int64_t m, int64_t /*k*/, int64_t n) { return 2 * product_bytes(m, n); }

extern "C" void launch(const __nv_bfloat16* x /*[m,k]*/, const __nv_bfloat16* wg /*[k,n]*/,
                       const __nv_bfloat16* wu /*[k,n]*/, __nv_bfloat16* h /*[m,n]*/, int64_t m, int64_t k,
                       int64_t n, void* workspace, cudaStream_t stream) {
  __nv_bfloat16* const gates = static_cast<__nv_bfloat16*>(workspace);
  __nv_bfloat16* const ups = gates + product_bytes(m, n) / sizeof(__nv_bfloat16);
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile),
                  static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(x, wg, gates, m, k, n);
  tiled<<<grid, block, 0, stream>>>(x, wu, ups, m, k, n);
  activate(gates, ups, h, m, n, stream);
}

#endif
