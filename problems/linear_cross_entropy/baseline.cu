// Native baseline: logits by cuBLASLt, bf16 with sums in fp32, in the workspace; then a block a row.
//
// The algorithm of the product is the first that the library's heuristic names. Where it names none, and on
// the emulated backend, a plain tiled kernel stands in; emulated times never count.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstddef>
#include <cstdint>

#ifndef CAPSTONE_EMULATED
#include <cublasLt.h>

#include <stdexcept>
#include <string>
#endif

namespace {

constexpr int kTile = 16, kThreads = 512, kWarps = kThreads / 32;

/// Rows of logits start on 16 bytes.
int64_t pitch_of(int64_t v) { return (v + 7) / 8 * 8; }

__global__ void tiled(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
                      __nv_bfloat16* __restrict__ logits, int64_t t, int64_t h, int64_t v, int64_t pitch) {
  __shared__ float x_tile[kTile][kTile], w_tile[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile, column = first + threadIdx.x;
  float sum = 0;
  for (int64_t p = 0; p < h; p += kTile) {
    const bool in_x = row < t && p + threadIdx.x < h, in_w = first + threadIdx.y < v && p + threadIdx.x < h;
    x_tile[threadIdx.y][threadIdx.x] = in_x ? __bfloat162float(x[row * h + p + threadIdx.x]) : 0.0f;
    w_tile[threadIdx.y][threadIdx.x] =
        in_w ? __bfloat162float(w[(first + threadIdx.y) * h + p + threadIdx.x]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += x_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
    __syncthreads();
  }
  if (row < t && column < v) logits[row * pitch + column] = __float2bfloat16(sum);
}

void launch_tiled(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* logits, int64_t t, int64_t h,
                  int64_t v, cudaStream_t stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((v + kTile - 1) / kTile),
                  static_cast<unsigned>((t + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(x, w, logits, t, h, v, pitch_of(v));
}

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}
__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

/// Combines the warps' results; every thread gets the answer. `partial` must not be in use.
template <class Reduce>
__device__ float across_warps(float value, float neutral, float* partial, Reduce reduce) {
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  return reduce(threadIdx.x % 32 < kWarps ? partial[threadIdx.x % 32] : neutral);
}

__global__ void cross_entropy(const __nv_bfloat16* __restrict__ logits, const int32_t* __restrict__ target,
                              float* __restrict__ loss, float* __restrict__ lse, int64_t v, int64_t pitch) {
  __shared__ float partial[2][kWarps];
  const __nv_bfloat16* row = logits + blockIdx.x * pitch;
  const uint4* row8 = reinterpret_cast<const uint4*>(row);
  const int64_t vectors = v / 8;  // the scalar loops start behind these

  float maximum = -FLT_MAX;
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    const uint4 at = row8[i];
    maximum = fmaxf(maximum, fmaxf(fmaxf(fmaxf(low(at.x), high(at.x)), fmaxf(low(at.y), high(at.y))),
                                   fmaxf(fmaxf(low(at.z), high(at.z)), fmaxf(low(at.w), high(at.w)))));
  }
  for (int64_t i = vectors * 8 + threadIdx.x; i < v; i += kThreads)
    maximum = fmaxf(maximum, __bfloat162float(row[i]));
  maximum = across_warps(warp_max(maximum), -FLT_MAX, partial[0], warp_max);

  float sum = 0;
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    const uint4 at = row8[i];
    sum += ((expf(low(at.x) - maximum) + expf(high(at.x) - maximum)) +
            (expf(low(at.y) - maximum) + expf(high(at.y) - maximum))) +
           ((expf(low(at.z) - maximum) + expf(high(at.z) - maximum)) +
            (expf(low(at.w) - maximum) + expf(high(at.w) - maximum)));
  }
  for (int64_t i = vectors * 8 + threadIdx.x; i < v; i += kThreads)
    sum += expf(__bfloat162float(row[i]) - maximum);
  sum = across_warps(warp_sum(sum), 0.0f, partial[1], warp_sum);

  if (threadIdx.x == 0) {
    const int64_t chosen = target[blockIdx.x];
    const float total = maximum + logf(sum);
    lse[blockIdx.x] = total;
    loss[blockIdx.x] = chosen >= 0 && chosen < v ? total - __bfloat162float(row[chosen]) : 0.0f;
  }
}

void launch_cross_entropy(const __nv_bfloat16* logits, const int32_t* target, float* loss, float* lse,
                          int64_t t, int64_t v, cudaStream_t stream) {
  cross_entropy<<<static_cast<unsigned>(t), kThreads, 0, stream>>>(logits, target, loss, lse, v, pitch_of(v));
}

// What NVIDIA recommends for Hopper; ample for older chips.
constexpr size_t kWorkspace = size_t{32} << 20;

}  // namespace

#ifndef CAPSTONE_EMULATED

namespace {

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

/// A product as cuBLASLt is asked for it, and what it chose. Row-major matrices are its transposes: the
/// result [v, t] is w, transposed, times x.
struct Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulHeuristicResult_t choice{};
  bool found = false;

  Plan(int64_t t, int64_t h, int64_t v) {
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                         sizeof transposed),
          "cublasLtMatmulDescSetAttribute");
    check(cublasLtMatrixLayoutCreate(&first, CUDA_R_16BF, h, v, h), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&second, CUDA_R_16BF, h, t, h), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&result, CUDA_R_16BF, v, t, pitch_of(v)), "cublasLtMatrixLayoutCreate");
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    // Sums of pieces of h are not to be rounded to bf16 in between.
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
                                   " GEMM into bf16 logits, then cross-entropy, block a row in two passes";
  return label.c_str();
}

#else

extern "C" const char* baseline_label() {
  return "native tiled GEMM into bf16 logits, then cross-entropy (emulated: stands in for cuBLASLt)";
}

#endif

extern "C" size_t workspace_bytes(int64_t t, int64_t /*h*/, int64_t v) {
  return kWorkspace + static_cast<size_t>(t * pitch_of(v)) * sizeof(__nv_bfloat16);
}

extern "C" void launch(const __nv_bfloat16* x /*[t,h]*/, const __nv_bfloat16* w /*[v,h]*/,
                       const int32_t* target /*[t]*/, float* loss /*[t]*/, float* lse /*[t]*/, int64_t t,
                       int64_t h, int64_t v, void* workspace, cudaStream_t stream) {
  auto* logits = reinterpret_cast<__nv_bfloat16*>(static_cast<char*>(workspace) + kWorkspace);
#ifndef CAPSTONE_EMULATED
  const Plan plan(t, h, v);
  if (plan.found) {
    const float one = 1, zero = 0;
    check(cublasLtMatmul(handle(), plan.operation, &one, w, plan.first, x, plan.second, &zero, logits,
                         plan.result, logits, plan.result, &plan.choice.algo, workspace, kWorkspace, stream),
          "cublasLtMatmul");
  } else {
    launch_tiled(x, w, logits, t, h, v, stream);
  }
#else
  launch_tiled(x, w, logits, t, h, v, stream);
#endif
  launch_cross_entropy(logits, target, loss, lse, t, v, stream);
}
