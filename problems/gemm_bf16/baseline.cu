// Native baseline: C = A * B, bf16 with sums in fp32, by cuBLASLt: the fastest of its own heuristics.
//
// cublasLtMatmulAlgoGetHeuristic() gives a list of algorithms, best guess first. The first call for a size times
// each of them with a cold L2 cache and keeps the fastest. That call is a warm-up: a process is called before any
// sample is taken, and every process of the baseline chooses for itself.
//
// On the emulated backend there is no cuBLASLt; a plain tiled kernel stands in, and its label says so. Emulated times
// never count, so nothing is lost but the name.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#ifndef CAPSTONE_EMULATED

#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace {

// What NVIDIA recommends for Hopper (cublasSetWorkspace); ample for older chips.
constexpr size_t kWorkspace = size_t{32} << 20;
constexpr int kCandidates = 24, kSamples = 5;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + cublasLtGetStatusString(status));
}
void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
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

/// Reads all of `data`. The result depends on it, so the compiler keeps the loads.
__global__ void read_all(const uint4* data, size_t count, unsigned* out) {
  unsigned sum = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    sum += data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;
  if (sum == 1) *out = sum;
}

/// Fills the L2 cache with clean lines of something else.
class ColdCache {
 public:
  ColdCache() {
    int device = 0, l2 = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
    bytes_ = size_t{4} * static_cast<size_t>(l2) + 256;
    check(cudaMalloc(&memory_, bytes_), "cudaMalloc");
    check(cudaMemset(memory_, 0, bytes_), "cudaMemset");
  }
  ~ColdCache() { cudaFree(memory_); }
  ColdCache(const ColdCache&) = delete;
  ColdCache& operator=(const ColdCache&) = delete;
  void chill(cudaStream_t stream) const {
    read_all<<<1024, 256, 0, stream>>>(static_cast<const uint4*>(memory_), bytes_ / sizeof(uint4), static_cast<unsigned*>(memory_));
  }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

/// A product of one size as cuBLASLt is asked for it. Row-major matrices are its transposes: C^T = B^T * A^T.
class Plan {
 public:
  Plan(int64_t m, int64_t k, int64_t n) {
    check(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    check(cublasLtMatrixLayoutCreate(&b_, CUDA_R_16BF, n, k, n), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&a_, CUDA_R_16BF, k, m, k), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&c_, CUDA_R_16BF, n, m, n), "cublasLtMatrixLayoutCreate");
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    // Sums of pieces of k are not to be rounded to bf16 in between: every scheme but the one in the output's type.
    prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_MASK & ~CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
    candidates_.resize(kCandidates);
    int count = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle(), operation_, b_, a_, c_, c_, preference, kCandidates, candidates_.data(), &count),
          "cublasLtMatmulAlgoGetHeuristic");
    candidates_.resize(static_cast<size_t>(count));
    cublasLtMatmulPreferenceDestroy(preference);
  }

  /// Times the candidates in turn and keeps the one with the lowest median.
  void choose(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, void* workspace, cudaStream_t stream) {
    const ColdCache cache;
    cudaEvent_t begin = nullptr, end = nullptr;
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    std::vector<std::vector<float>> times(candidates_.size());
    for (int round = 0; round <= kSamples; ++round)  // the first round loads the kernels
      for (size_t i = 0; i < candidates_.size(); ++i) {
        cache.chill(stream);
        check(cudaEventRecord(begin, stream), "cudaEventRecord");
        const cublasStatus_t status = multiply(candidates_[i], a, b, c, workspace, stream);
        check(cudaEventRecord(end, stream), "cudaEventRecord");
        check(cudaEventSynchronize(end), "cudaEventSynchronize");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
        if (status != CUBLAS_STATUS_SUCCESS) ms = 1e9f;
        if (round > 0) times[i].push_back(ms);
      }
    float least = 1e9f;
    for (size_t i = 0; i < times.size(); ++i) {
      std::nth_element(times[i].begin(), times[i].begin() + kSamples / 2, times[i].end());
      if (times[i][kSamples / 2] < least) least = times[i][kSamples / 2], best_ = i;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }

  void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, void* workspace, cudaStream_t stream) const {
    check(multiply(candidates_.at(best_), a, b, c, workspace, stream), "cublasLtMatmul");
  }

 private:
  template <class T>
  static void prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  }
  cublasStatus_t multiply(const cublasLtMatmulHeuristicResult_t& with, const __nv_bfloat16* a, const __nv_bfloat16* b,
                          __nv_bfloat16* c, void* workspace, cudaStream_t stream) const {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle(), operation_, &one, b, b_, a, a_, &zero, c, c_, c, c_, &with.algo, workspace, kWorkspace, stream);
  }

  cublasLtMatmulDesc_t operation_ = nullptr;  // kept, as the plan is, for the life of the process
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> candidates_;
  size_t best_ = 0;
};

}  // namespace

extern "C" const char* baseline_label() {
  static const std::string label = "cuBLASLt " + std::to_string(cublasLtGetVersion() / 10000) + "." +
                                   std::to_string(cublasLtGetVersion() / 100 % 100) +
                                   " GEMM, bf16, sums in fp32, the fastest of its heuristics";
  return label.c_str();
}

extern "C" size_t workspace_bytes(int64_t /*m*/, int64_t /*k*/, int64_t /*n*/) { return kWorkspace; }

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* b /*[k,n]*/, __nv_bfloat16* c /*[m,n]*/,
                       int64_t m, int64_t k, int64_t n, void* workspace, cudaStream_t stream) {
  static std::map<std::tuple<int64_t, int64_t, int64_t>, Plan> plans;
  auto plan = plans.find({m, k, n});
  if (plan == plans.end()) {
    plan = plans.try_emplace({m, k, n}, m, k, n).first;
    plan->second.choose(a, b, c, workspace, stream);
  }
  plan->second.run(a, b, c, workspace, stream);
}

#else

namespace {

constexpr int kTile = 16;

__global__ void tiled(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b, __nv_bfloat16* __restrict__ c,
                      int64_t m, int64_t k, int64_t n) {
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

extern "C" const char* baseline_label() { return "native tiled GEMM, bf16 (emulated: stands in for cuBLASLt)"; }

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* b /*[k,n]*/, __nv_bfloat16* c /*[m,n]*/,
                       int64_t m, int64_t k, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(a, b, c, m, k, n);
}

#endif
