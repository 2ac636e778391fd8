// Native baseline: a kernel for the norm, and cuBLAS for the product.
//
// The norm moves less than a megabyte at 16 rows; what it costs is a launch and its latencies. On the
// emulated backend there is no cuBLAS; a plain tiled kernel stands in, and its label says so.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kThreads = 1024;

/// Two bf16 in a word, the first in its lower half.
__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ float squares(unsigned word) { return low(word) * low(word) + high(word) * high(word); }
__device__ unsigned scaled(unsigned x, unsigned g, float scale) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low(x) * scale * low(g), high(x) * scale * high(g));
  return reinterpret_cast<const unsigned&>(both);
}

/// The normalised rows, in bf16: a block a row, 16 bytes at a time.
__global__ void __launch_bounds__(kThreads) rmsnorm(const uint4* __restrict__ x, const uint4* __restrict__ g,
                                                    uint4* __restrict__ normed, float eps, int vectors) {
  __shared__ float partial[kThreads / 32];
  const int64_t start = static_cast<int64_t>(blockIdx.x) * vectors;
  float sum = 0;
  for (int i = threadIdx.x; i < vectors; i += kThreads) {
    const uint4 v = x[start + i];
    sum += squares(v.x) + squares(v.y) + squares(v.z) + squares(v.w);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < kThreads / 32; ++warp) sum += partial[warp];
  const float scale = rsqrtf(sum / static_cast<float>(8 * vectors) + eps);
  for (int i = threadIdx.x; i < vectors; i += kThreads) {
    const uint4 v = x[start + i], factor = g[i];
    normed[start + i] = make_uint4(scaled(v.x, factor.x, scale), scaled(v.y, factor.y, scale),
                                   scaled(v.z, factor.z, scale), scaled(v.w, factor.w, scale));
  }
}

/// Bytes of the normalised rows, rounded up so that what lies behind them is 256-byte aligned, too.
size_t normed_bytes(int64_t m, int64_t k) {
  return (static_cast<size_t>(m * k) * sizeof(__nv_bfloat16) + 255) / 256 * 256;
}

void normalise(const __nv_bfloat16* x, const __nv_bfloat16* g, void* normed, float eps, int64_t m, int64_t k,
               cudaStream_t stream) {
  rmsnorm<<<static_cast<unsigned>(m), kThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(x), reinterpret_cast<const uint4*>(g), static_cast<uint4*>(normed), eps,
      static_cast<int>(k / 8));
}

}  // namespace

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

/// One handle for the life of the process: creating it costs far more than any product.
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
  static const std::string label =
      "native: RMSNorm kernel, then cuBLAS " + version() + " GEMM, bf16, sums in fp32";
  return label.c_str();
}

extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t /*n*/) {
  return normed_bytes(m, k) + kCublasWorkspace;
}

extern "C" void launch(const __nv_bfloat16* x /*[m,k]*/, const __nv_bfloat16* g /*[k]*/,
                       const __nv_bfloat16* w /*[n,k]*/, __nv_bfloat16* y /*[m,n]*/, float eps, int64_t m,
                       int64_t k, int64_t n, void* workspace, cudaStream_t stream) {
  normalise(x, g, workspace, eps, m, k, stream);
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), stream),
        "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), static_cast<char*>(workspace) + normed_bytes(m, k), kCublasWorkspace),
        "cublasSetWorkspace");
  // cuBLAS is column-major, and a row-major matrix read that way is its transpose: Y^T = W X^T.
  check(cublasGemmEx_64(handle(), CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, w, CUDA_R_16BF, k, workspace,
                        CUDA_R_16BF, k, &zero, y, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

#else

namespace {

constexpr int kTile = 16;

__global__ void tiled(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ w,
                      __nv_bfloat16* __restrict__ y, int64_t m, int64_t k, int64_t n) {
  __shared__ float a_tile[kTile][kTile + 1], w_tile[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile;
  float sum = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kTile) {
    const bool in_k = k0 + threadIdx.x < k;
    a_tile[threadIdx.y][threadIdx.x] =
        in_k && row < m ? __bfloat162float(a[row * k + k0 + threadIdx.x]) : 0.0f;
    w_tile[threadIdx.y][threadIdx.x] = in_k && first + threadIdx.y < n
                                           ? __bfloat162float(w[(first + threadIdx.y) * k + k0 + threadIdx.x])
                                           : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
    __syncthreads();
  }
  if (row < m && first + threadIdx.x < n) y[row * n + first + threadIdx.x] = __float2bfloat16(sum);
}

}  // namespace

extern "C" const char* baseline_label() {
  return "native: RMSNorm kernel, then tiled GEMM, bf16 (emulated: stands in for cuBLAS)";
}

extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t /*n*/) { return normed_bytes(m, k); }

extern "C" void launch(const __nv_bfloat16* x /*[m,k]*/, const __nv_bfloat16* g /*[k]*/,
                       const __nv_bfloat16* w /*[n,k]*/, __nv_bfloat16* y /*[m,n]*/, float eps, int64_t m,
                       int64_t k, int64_t n, void* workspace, cudaStream_t stream) {
  normalise(x, g, workspace, eps, m, k, stream);
  const dim3 block(kTile, kTile);
  const dim3 grid(static_cast<unsigned>((n + kTile - 1) / kTile),
                  static_cast<unsigned>((m + kTile - 1) / kTile));
  tiled<<<grid, block, 0, stream>>>(static_cast<const __nv_bfloat16*>(workspace), w, y, m, k, n);
}

#endif
