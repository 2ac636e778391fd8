#pragma once
#pragma GCC system_header
// cuBLAS on the CPU: vectors, matrix times vector, matrix products of real numbers. The declarations are
// NVIDIA's; a function that has no definition here is refused by the linker. Matrices are column-major.
// Products are added up in float (double, int for such types), in another order than on a GPU.
#include_next <cublas_v2.h>

#include <cmath>
#include <type_traits>

#include "capstone_emulator/library.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
};

namespace capstone_emu::cublas {

/// alpha or beta: read now, or when the work runs.
template <class T>
struct Scalar {
  const void* pointer;
  cudaDataType type;
  bool on_device;
  T value;
  Scalar(cublasHandle_t handle, const void* from, cudaDataType of)
      : pointer(from), type(of), on_device(handle->pointers == CUBLAS_POINTER_MODE_DEVICE), value() {
    if (!on_device) value = library::loaded<T>(from, of, 0);
  }
  T get() const { return on_device ? library::loaded<T>(pointer, type, 0) : value; }
};
template <class T>
inline constexpr cudaDataType kTypeOf = std::is_same_v<T, float>    ? CUDA_R_32F
                                        : std::is_same_v<T, double> ? CUDA_R_64F
                                                                    : CUDA_R_16F;

inline cublasStatus_t status(bool ran) {
  return ran ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

// ---- matrix products --------------------------------------------------------------------------------------
struct Matrix {
  const void* memory;
  cudaDataType type;
  std::size_t leading;
  bool transposed;
  long long stride = 0;                   ///< elements between the matrices of a batch
  const void* const* pointers = nullptr;  ///< of a batch; then `memory` is not used
  const void* of(unsigned batch) const { return pointers ? pointers[batch] : memory; }
  template <class T>
  T at(unsigned batch, std::size_t row, std::size_t column) const {
    const std::size_t i = transposed ? row * leading + column : column * leading + row;
    return library::loaded<T>(of(batch), type, i + (pointers ? 0 : static_cast<std::size_t>(batch * stride)));
  }
};

/// One tile of C = alpha * A * B + beta * C: parts of A and B are copied, converted, to where loops are
/// quick.
template <class T>
inline void multiply_tile(const Matrix& a, const Matrix& b, const Matrix& c, std::size_t m, std::size_t n,
                          std::size_t k, T alpha, T beta, dim3 block) {
  constexpr std::size_t kRows = 64, kColumns = 16, kDepth = 64;
  T left[kDepth][kRows], right[kDepth][kColumns], sum[kColumns][kRows] = {};
  const std::size_t row = block.x * kRows, column = block.y * kColumns;
  for (std::size_t begin = 0; begin < k && alpha != T{}; begin += kDepth) {
    const std::size_t depth = k - begin < kDepth ? k - begin : kDepth;
    for (std::size_t d = 0; d < depth; ++d) {
      for (std::size_t i = 0; i < kRows; ++i)
        left[d][i] = row + i < m ? a.at<T>(block.z, row + i, begin + d) : T{};
      for (std::size_t j = 0; j < kColumns; ++j)
        right[d][j] = column + j < n ? b.at<T>(block.z, begin + d, column + j) : T{};
    }
    for (std::size_t d = 0; d < depth; ++d)
      for (std::size_t j = 0; j < kColumns; ++j)
        for (std::size_t i = 0; i < kRows; ++i) sum[j][i] += left[d][i] * right[d][j];
  }
  for (std::size_t j = 0; j < kColumns && column + j < n; ++j)
    for (std::size_t i = 0; i < kRows && row + i < m; ++i) {
      T value = alpha * sum[j][i];
      if (beta != T{}) value += beta * c.at<T>(block.z, row + i, column + j);  // else C may hold anything
      const std::size_t at = (column + j) * c.leading + row + i;
      library::store(const_cast<void*>(c.of(block.z)), c.type,
                     at + (c.pointers ? 0 : static_cast<std::size_t>(block.z * c.stride)), value);
    }
}

template <class T>
inline cublasStatus_t multiply_as(cublasHandle_t handle, const char* name, Matrix a, Matrix b, Matrix c,
                                  int m, int n, int k, const void* alpha, const void* beta,
                                  cudaDataType scale, int batches) {
  const Scalar<T> by(handle, alpha, scale), onto(handle, beta, scale);
  const dim3 blocks((m + 63) / 64, (n + 15) / 16, batches);
  return status(library::run(
      name, handle->stream, blocks,
      [=](dim3 block) { multiply_tile<T>(a, b, c, m, n, k, by.get(), onto.get(), block); },
      a.pointers ? static_cast<const void*>(a.pointers) : a.memory,
      b.pointers ? static_cast<const void*>(b.pointers) : b.memory,
      c.pointers ? static_cast<const void*>(c.pointers) : c.memory));
}

/// @param scale  type of alpha, beta and the sums
inline cublasStatus_t multiply(cublasHandle_t handle, const char* name, cublasOperation_t op_a,
                               cublasOperation_t op_b, int m, int n, int k, const void* alpha, Matrix a,
                               Matrix b, const void* beta, Matrix c, cudaDataType scale, int batches = 1) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  a.transposed = op_a != CUBLAS_OP_N;
  b.transposed = op_b != CUBLAS_OP_N;
  if (m < 0 || n < 0 || k < 0 || batches < 0 || !alpha || !beta ||
      a.leading < static_cast<std::size_t>(std::max(1, a.transposed ? k : m)) ||
      b.leading < static_cast<std::size_t>(std::max(1, b.transposed ? n : k)) ||
      c.leading < static_cast<std::size_t>(std::max(1, m)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!library::is_known(a.type) || !library::is_known(b.type) || !library::is_known(c.type))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (scale == CUDA_R_64F)
    return multiply_as<double>(handle, name, a, b, c, m, n, k, alpha, beta, scale, batches);
  if (scale == CUDA_R_32I)
    return multiply_as<std::int32_t>(handle, name, a, b, c, m, n, k, alpha, beta, scale, batches);
  return multiply_as<float>(handle, name, a, b, c, m, n, k, alpha, beta, scale, batches);
}

/// Of alpha and beta, by the type of the sums; -1: not one of these.
inline int scale_type(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return CUDA_R_16F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return CUDA_R_32F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return CUDA_R_64F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return CUDA_R_32I;
    default:
      return -1;
  }
}

// ---- vectors ----------------------------------------------------------------------------------------------
/// A step below zero begins at the other end.
template <class T>
inline T& element(T* x, long long n, long long i, long long step) {
  return x[step < 0 ? (i - n + 1) * step : i * step];
}
/// body(i) for each i
template <class Body, class... Pointers>
inline cublasStatus_t each(cublasHandle_t handle, const char* name, int n, Body body, Pointers... pointers) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  return status(library::run(
      name, handle->stream, dim3(library::chunks(n)),
      [=](dim3 block) {
        const long long begin = static_cast<long long>(block.x) * library::kChunk,
                        end = std::min<long long>(n, begin + library::kChunk);
        for (long long i = begin; i < end; ++i) body(i);
      },
      pointers...));
}
/// One number, which the host waits for if it lies there.
template <class T, class Body, class... Pointers>
inline cublasStatus_t reduce(cublasHandle_t handle, const char* name, T* result, Body body,
                             Pointers... pointers) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (handle->pointers == CUBLAS_POINTER_MODE_DEVICE)
    return status(library::run(
        name, handle->stream, dim3(1), [=](dim3) { *result = body(); }, pointers..., result));
  const library::Shared<T> shared;
  T* const to = shared.get();
  if (!library::run(
          name, handle->stream, dim3(1), [=](dim3) { *to = body(); }, pointers...))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  *result = shared.awaited();
  return status(last_error() == cudaSuccess);
}
/// The first place of the largest or smallest magnitude, counted from 1; 0: there is none.
template <class T>
inline cublasStatus_t extreme(cublasHandle_t handle, const char* name, int n, const T* x, int step,
                              int* result, bool largest) {
  return reduce(
      handle, name, result,
      [=] {
        int best = 0;
        for (int i = 1; i < n; ++i) {
          const T a = std::abs(x[1ll * i * step]), b = std::abs(x[1ll * best * step]);
          if (largest ? a > b : a < b) best = i;
        }
        return n > 0 && step > 0 ? best + 1 : 0;
      },
      x);
}

}  // namespace capstone_emu::cublas

extern "C" {

// ---- handles ----------------------------------------------------------------------------------------------
inline cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
#define CAPSTONE_CUBLAS_FIELD(set, get, type, field)              \
  inline cublasStatus_t set(cublasHandle_t handle, type value) {  \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;            \
    handle->field = value;                                        \
    return CUBLAS_STATUS_SUCCESS;                                 \
  }                                                               \
  inline cublasStatus_t get(cublasHandle_t handle, type* value) { \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;            \
    *value = handle->field;                                       \
    return CUBLAS_STATUS_SUCCESS;                                 \
  }
CAPSTONE_CUBLAS_FIELD(cublasSetStream_v2, cublasGetStream_v2, cudaStream_t, stream)
CAPSTONE_CUBLAS_FIELD(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t, pointers)
CAPSTONE_CUBLAS_FIELD(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math)
CAPSTONE_CUBLAS_FIELD(cublasSetAtomicsMode, cublasGetAtomicsMode, cublasAtomicsMode_t, atomics)
#undef CAPSTONE_CUBLAS_FIELD
inline const char* cublasGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS            ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_NOT_INITIALIZED  ? "CUBLAS_STATUS_NOT_INITIALIZED"
         : status == CUBLAS_STATUS_INVALID_VALUE    ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
         : status == CUBLAS_STATUS_NOT_SUPPORTED    ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                    : "CUBLAS_STATUS_INTERNAL_ERROR";
}
inline const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS           ? "success"
         : status == CUBLAS_STATUS_NOT_INITIALIZED ? "the library was not initialized"
         : status == CUBLAS_STATUS_INVALID_VALUE
             ? "an unsupported value or parameter was passed to the function"
         : status == CUBLAS_STATUS_EXECUTION_FAILED ? "the program failed to execute"
         : status == CUBLAS_STATUS_NOT_SUPPORTED    ? "the functionality requested is not supported"
                                                    : "an internal operation failed";
}

// ---- copies -----------------------------------------------------------------------------------------------
inline cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* from, int from_leading,
                                      void* to, int to_leading) {
  const cudaError_t error = ::cudaMemcpy2D(to, 1ull * to_leading * size, from, 1ull * from_leading * size,
                                           1ull * rows * size, columns, cudaMemcpyHostToDevice);
  return error ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* from, int from_leading,
                                      void* to, int to_leading) {
  const cudaError_t error = ::cudaMemcpy2D(to, 1ull * to_leading * size, from, 1ull * from_leading * size,
                                           1ull * rows * size, columns, cudaMemcpyDeviceToHost);
  return error ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetVector(int n, int size, const void* from, int from_step, void* to,
                                      int to_step) {
  return cublasSetMatrix(1, n, size, from, from_step, to, to_step);
}
inline cublasStatus_t cublasGetVector(int n, int size, const void* from, int from_step, void* to,
                                      int to_step) {
  return cublasGetMatrix(1, n, size, from, from_step, to, to_step);
}

// ---- of float and of double -------------------------------------------------------------------------------
#define CAPSTONE_CUBLAS(letter, T)                                                                           \
  inline cublasStatus_t cublas##letter##axpy_v2(cublasHandle_t h, int n, const T* alpha, const T* x,         \
                                                int x_step, T* y, int y_step) {                              \
    using namespace capstone_emu::cublas;                                                                    \
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;                                                            \
    const Scalar<T> by(h, alpha, kTypeOf<T>);                                                                \
    return each(                                                                                             \
        h, "cublas" #letter "axpy", n,                                                                       \
        [=](long long i) { element(y, n, i, y_step) += by.get() * element(x, n, i, x_step); }, x, y);        \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##scal_v2(cublasHandle_t h, int n, const T* alpha, T* x, int x_step) { \
    using namespace capstone_emu::cublas;                                                                    \
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;                                                            \
    const Scalar<T> by(h, alpha, kTypeOf<T>);                                                                \
    return each(                                                                                             \
        h, "cublas" #letter "scal", n, [=](long long i) { element(x, n, i, x_step) *= by.get(); }, x);       \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##copy_v2(cublasHandle_t h, int n, const T* x, int x_step, T* y,       \
                                                int y_step) {                                                \
    using namespace capstone_emu::cublas;                                                                    \
    return each(                                                                                             \
        h, "cublas" #letter "copy", n,                                                                       \
        [=](long long i) { element(y, n, i, y_step) = element(x, n, i, x_step); }, x, y);                    \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##swap_v2(cublasHandle_t h, int n, T* x, int x_step, T* y,             \
                                                int y_step) {                                                \
    using namespace capstone_emu::cublas;                                                                    \
    return each(                                                                                             \
        h, "cublas" #letter "swap", n,                                                                       \
        [=](long long i) { std::swap(element(y, n, i, y_step), element(x, n, i, x_step)); }, x, y);          \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##dot_v2(cublasHandle_t h, int n, const T* x, int x_step, const T* y,  \
                                               int y_step, T* result) {                                      \
    using namespace capstone_emu::cublas;                                                                    \
    return reduce(                                                                                           \
        h, "cublas" #letter "dot", result,                                                                   \
        [=] {                                                                                                \
          double sum = 0;                                                                                    \
          for (int i = 0; i < n; ++i) sum += 1.0 * element(x, n, i, x_step) * element(y, n, i, y_step);      \
          return static_cast<T>(sum);                                                                        \
        },                                                                                                   \
        x, y);                                                                                               \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##nrm2_v2(cublasHandle_t h, int n, const T* x, int x_step,             \
                                                T* result) {                                                 \
    using namespace capstone_emu::cublas;                                                                    \
    return reduce(                                                                                           \
        h, "cublas" #letter "nrm2", result,                                                                  \
        [=] {                                                                                                \
          double norm = 0;                                                                                   \
          for (int i = 0; i < n; ++i)                                                                        \
            norm = std::hypot(norm, static_cast<double>(element(x, n, i, x_step)));                          \
          return static_cast<T>(norm);                                                                       \
        },                                                                                                   \
        x);                                                                                                  \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##asum_v2(cublasHandle_t h, int n, const T* x, int x_step,             \
                                                T* result) {                                                 \
    using namespace capstone_emu::cublas;                                                                    \
    return reduce(                                                                                           \
        h, "cublas" #letter "asum", result,                                                                  \
        [=] {                                                                                                \
          double sum = 0;                                                                                    \
          for (int i = 0; i < n; ++i) sum += std::abs(element(x, n, i, x_step));                             \
          return static_cast<T>(sum);                                                                        \
        },                                                                                                   \
        x);                                                                                                  \
  }                                                                                                          \
  inline cublasStatus_t cublasI##letter##max_of(cublasHandle_t h, int n, const T* x, int step,               \
                                                int* result) {                                               \
    return capstone_emu::cublas::extreme(h, "cublasI" #letter "amax", n, x, step, result, true);             \
  }                                                                                                          \
  inline cublasStatus_t cublasI##letter##min_of(cublasHandle_t h, int n, const T* x, int step,               \
                                                int* result) {                                               \
    return capstone_emu::cublas::extreme(h, "cublasI" #letter "amin", n, x, step, result, false);            \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##gemv_v2(cublasHandle_t h, cublasOperation_t op, int m, int n,        \
                                                const T* alpha, const T* a, int lda, const T* x, int x_step, \
                                                const T* beta, T* y, int y_step) {                           \
    using namespace capstone_emu::cublas;                                                                    \
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;                                                            \
    if (m < 0 || n < 0 || lda < std::max(1, m) || !x_step || !y_step) return CUBLAS_STATUS_INVALID_VALUE;    \
    const Scalar<T> by(h, alpha, kTypeOf<T>), onto(h, beta, kTypeOf<T>);                                     \
    const bool turned = op != CUBLAS_OP_N;                                                                   \
    const int rows = turned ? n : m, columns = turned ? m : n;                                               \
    return each(                                                                                             \
        h, "cublas" #letter "gemv", rows,                                                                    \
        [=](long long i) {                                                                                   \
          T sum = 0;                                                                                         \
          for (int j = 0; j < columns; ++j)                                                                  \
            sum += a[turned ? i * lda + j : 1ll * j * lda + i] * element(x, columns, j, x_step);             \
          T& to = element(y, rows, i, y_step);                                                               \
          const T scale = onto.get();                                                                        \
          to = by.get() * sum + (scale != 0 ? scale * to : 0);                                               \
        },                                                                                                   \
        a, x, y);                                                                                            \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##ger_v2(cublasHandle_t h, int m, int n, const T* alpha, const T* x,   \
                                               int x_step, const T* y, int y_step, T* a, int lda) {          \
    using namespace capstone_emu::cublas;                                                                    \
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;                                                            \
    const Scalar<T> by(h, alpha, kTypeOf<T>);                                                                \
    return each(                                                                                             \
        h, "cublas" #letter "ger", n,                                                                        \
        [=](long long j) {                                                                                   \
          for (int i = 0; i < m; ++i)                                                                        \
            a[j * lda + i] += by.get() * element(x, m, i, x_step) * element(y, n, j, y_step);                \
        },                                                                                                   \
        x, y, a);                                                                                            \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##geam(                                                                \
      cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, const T* alpha,        \
      const T* a, int lda, const T* beta, const T* b, int ldb, T* c, int ldc) {                              \
    using namespace capstone_emu::cublas;                                                                    \
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;                                                            \
    const Scalar<T> by(h, alpha, kTypeOf<T>), onto(h, beta, kTypeOf<T>);                                     \
    return each(                                                                                             \
        h, "cublas" #letter "geam", n,                                                                       \
        [=](long long j) {                                                                                   \
          const T left = by.get(), right = onto.get();                                                       \
          for (int i = 0; i < m; ++i)                                                                        \
            c[j * ldc + i] =                                                                                 \
                (left != 0 ? left * a[op_a == CUBLAS_OP_N ? j * lda + i : 1ll * i * lda + j] : 0) +          \
                (right != 0 ? right * b[op_b == CUBLAS_OP_N ? j * ldb + i : 1ll * i * ldb + j] : 0);         \
        },                                                                                                   \
        c);                                                                                                  \
  }                                                                                                          \
  CAPSTONE_CUBLAS_PRODUCTS(letter, T, letter##gemm_v2)
#define CAPSTONE_CUBLAS_PRODUCTS(letter, T, plain)                                                           \
  inline cublasStatus_t cublas##plain(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b,      \
                                      int m, int n, int k, const T* alpha, const T* a, int lda, const T* b,  \
                                      int ldb, const T* beta, T* c, int ldc) {                               \
    constexpr cudaDataType kType = capstone_emu::cublas::kTypeOf<T>;                                         \
    return capstone_emu::cublas::multiply(h, "cublas" #letter "gemm", op_a, op_b, m, n, k, alpha,            \
                                          {a, kType, static_cast<std::size_t>(lda), false},                  \
                                          {b, kType, static_cast<std::size_t>(ldb), false}, beta,            \
                                          {c, kType, static_cast<std::size_t>(ldc), false}, kType);          \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##gemmStridedBatched(                                                  \
      cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, const T* alpha, \
      const T* a, int lda, long long a_stride, const T* b, int ldb, long long b_stride, const T* beta, T* c, \
      int ldc, long long c_stride, int batches) {                                                            \
    constexpr cudaDataType kType = capstone_emu::cublas::kTypeOf<T>;                                         \
    return capstone_emu::cublas::multiply(h, "cublas" #letter "gemmStridedBatched", op_a, op_b, m, n, k,     \
                                          alpha, {a, kType, static_cast<std::size_t>(lda), false, a_stride}, \
                                          {b, kType, static_cast<std::size_t>(ldb), false, b_stride}, beta,  \
                                          {c, kType, static_cast<std::size_t>(ldc), false, c_stride}, kType, \
                                          batches);                                                          \
  }                                                                                                          \
  inline cublasStatus_t cublas##letter##gemmBatched(                                                         \
      cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, const T* alpha, \
      const T* const a[], int lda, const T* const b[], int ldb, const T* beta, T* const c[], int ldc,        \
      int batches) {                                                                                         \
    constexpr cudaDataType kType = capstone_emu::cublas::kTypeOf<T>;                                         \
    auto of = [](auto pointers) { return reinterpret_cast<const void* const*>(pointers); };                  \
    return capstone_emu::cublas::multiply(                                                                   \
        h, "cublas" #letter "gemmBatched", op_a, op_b, m, n, k, alpha,                                       \
        {nullptr, kType, static_cast<std::size_t>(lda), false, 0, of(a)},                                    \
        {nullptr, kType, static_cast<std::size_t>(ldb), false, 0, of(b)}, beta,                              \
        {nullptr, kType, static_cast<std::size_t>(ldc), false, 0, of(c)}, kType, batches);                   \
  }
#define cublasISmax_of cublasIsamax_v2
#define cublasISmin_of cublasIsamin_v2
#define cublasIDmax_of cublasIdamax_v2
#define cublasIDmin_of cublasIdamin_v2
CAPSTONE_CUBLAS(S, float)
CAPSTONE_CUBLAS(D, double)
CAPSTONE_CUBLAS_PRODUCTS(H, __half, Hgemm)
#undef cublasISmax_of
#undef cublasISmin_of
#undef cublasIDmax_of
#undef cublasIDmin_of
#undef CAPSTONE_CUBLAS
#undef CAPSTONE_CUBLAS_PRODUCTS

// ---- of types that are known when the program runs --------------------------------------------------------
inline cublasStatus_t cublasSgemmEx(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                    int n, int k, const float* alpha, const void* a, cudaDataType a_type,
                                    int lda, const void* b, cudaDataType b_type, int ldb, const float* beta,
                                    void* c, cudaDataType c_type, int ldc) {
  return capstone_emu::cublas::multiply(h, "cublasSgemmEx", op_a, op_b, m, n, k, alpha,
                                        {a, a_type, static_cast<std::size_t>(lda), false},
                                        {b, b_type, static_cast<std::size_t>(ldb), false}, beta,
                                        {c, c_type, static_cast<std::size_t>(ldc), false}, CUDA_R_32F);
}
inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, const void* alpha,
    const void* a, cudaDataType a_type, int lda, long long a_stride, const void* b, cudaDataType b_type,
    int ldb, long long b_stride, const void* beta, void* c, cudaDataType c_type, int ldc, long long c_stride,
    int batches, cublasComputeType_t compute, cublasGemmAlgo_t) {
  const int scale = capstone_emu::cublas::scale_type(compute);
  if (scale < 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  // Bytes are scaled by floats if the result is one.
  const cudaDataType scaled =
      scale == CUDA_R_32I && c_type == CUDA_R_32F ? CUDA_R_32F : static_cast<cudaDataType>(scale);
  return capstone_emu::cublas::multiply(h, "cublasGemmEx", op_a, op_b, m, n, k, alpha,
                                        {a, a_type, static_cast<std::size_t>(lda), false, a_stride},
                                        {b, b_type, static_cast<std::size_t>(ldb), false, b_stride}, beta,
                                        {c, c_type, static_cast<std::size_t>(ldc), false, c_stride}, scaled,
                                        batches);
}
inline cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                   int n, int k, const void* alpha, const void* a, cudaDataType a_type,
                                   int lda, const void* b, cudaDataType b_type, int ldb, const void* beta,
                                   void* c, cudaDataType c_type, int ldc, cublasComputeType_t compute,
                                   cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(h, op_a, op_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta,
                                    c, c_type, ldc, 0, 1, compute, algorithm);
}

}  // extern "C"
