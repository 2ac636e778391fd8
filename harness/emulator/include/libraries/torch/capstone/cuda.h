#pragma once
#pragma GCC system_header
// Of the stand-in for PyTorch's extension headers: streams, devices, and the choice of a type for a kernel.
// There is one device and one stream, the default one.
#include "operators.h"

#define C10_CUDA_CHECK(call) ::capstone_torch::check_cuda(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define C10_CUDA_CHECK_WARN(call) static_cast<void>(call)
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define TORCH_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()

namespace c10 {
struct DeviceGuard {
  explicit DeviceGuard(Device) {}
};
struct OptionalDeviceGuard {
  OptionalDeviceGuard() = default;
  template <class T>
  explicit OptionalDeviceGuard(const T&) {}
};
namespace cuda {
class CUDAStream {
 public:
  CUDAStream(cudaStream_t stream = nullptr) : stream_(stream) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { capstone_torch::check_cuda(cudaStreamSynchronize(stream_)); }
  DeviceIndex device_index() const { return 0; }
  Device device() const { return kCUDA; }

 private:
  cudaStream_t stream_;
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) { return {}; }
inline DeviceIndex current_device() { return 0; }
inline DeviceIndex device_count() { return 1; }
inline void device_synchronize() { capstone_torch::check_cuda(cudaDeviceSynchronize()); }
struct CUDAGuard {
  template <class T>
  explicit CUDAGuard(const T&) {}
  void set_device(Device) {}
};
struct OptionalCUDAGuard {
  OptionalCUDAGuard() = default;
  template <class T>
  explicit OptionalCUDAGuard(const T&) {}
  void set_device(Device) {}
};
}  // namespace cuda
}  // namespace c10

namespace at {
inline TensorOptions dtype(ScalarType type) { return type; }
inline TensorOptions device(Device device) { return device; }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }
template <class T>
Device device_of(const T& tensor) {
  return tensor.device();
}
namespace cuda {
using namespace c10::cuda;
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp properties = [] {
    cudaDeviceProp all;
    capstone_torch::check_cuda(cudaGetDeviceProperties(&all, 0));
    return all;
  }();
  return &properties;
}
inline cudaDeviceProp* getDeviceProperties(DeviceIndex) { return getCurrentDeviceProperties(); }
inline int warp_size() { return 32; }
template <class T>
T ATenCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}
inline bool is_available() { return true; }
CAPSTONE_TORCH_LACKS_FUNCTION(getCurrentCUDABlasHandle);
CAPSTONE_TORCH_LACKS_FUNCTION(getDefaultCUDAGenerator);
}  // namespace cuda
using cuda::ATenCeilDiv;
namespace detail {
inline DeviceIndex getDeviceIndex() { return 0; }
}  // namespace detail

/// The type that sums of T are kept in.
template <class T, bool is_cuda>
struct AccumulateType {
  using type = std::conditional_t<
      std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
      std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, std::int64_t,
                         std::conditional_t<std::is_same_v<T, float> && !is_cuda, double, T>>>;
};
template <class T, bool is_cuda>
using acc_type = typename AccumulateType<T, is_cuda>::type;
template <class T>
struct OpMathType {
  using type = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;
}  // namespace at

template <class T>
T gpuAtomicAdd(T* address, T value) {
  if constexpr (std::is_same_v<T, c10::Half>)
    return atomicAdd(reinterpret_cast<__half*>(address), static_cast<__half>(value));
  else if constexpr (std::is_same_v<T, c10::BFloat16>)
    return atomicAdd(reinterpret_cast<__nv_bfloat16*>(address), static_cast<__nv_bfloat16>(value));
  else
    return atomicAdd(address, value);
}
template <class T>
void gpuAtomicAddNoReturn(T* address, T value) {
  gpuAtomicAdd(address, value);
}

// --- the choice of a type ----------------------------------------------------------------------------------
namespace capstone_torch {
inline ScalarType type_of(ScalarType type) { return type; }
}  // namespace capstone_torch
#define AT_DISPATCH_CASE(kind, ...)                                      \
  case kind: {                                                           \
    using scalar_t [[maybe_unused]] = ::c10::ScalarTypeToCPPTypeT<kind>; \
    return __VA_ARGS__();                                                \
  }
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                  \
  [&] {                                                                                      \
    const ::c10::ScalarType capstone_torch_type = ::capstone_torch::type_of(TYPE);           \
    switch (capstone_torch_type) {                                                           \
      __VA_ARGS__                                                                            \
      default:                                                                               \
        TORCH_CHECK(false, '"', NAME, "\" not implemented for '", capstone_torch_type, "'"); \
    }                                                                                        \
    __builtin_unreachable();                                                                 \
  }()
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(::c10::kDouble, __VA_ARGS__) AT_DISPATCH_CASE(::c10::kFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)                                             \
  AT_DISPATCH_CASE(::c10::kByte, __VA_ARGS__)                                            \
  AT_DISPATCH_CASE(::c10::kChar, __VA_ARGS__) AT_DISPATCH_CASE(::c10::kInt, __VA_ARGS__) \
      AT_DISPATCH_CASE(::c10::kLong, __VA_ARGS__) AT_DISPATCH_CASE(::c10::kShort, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::c10::kHalf, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                           \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...)                                     \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...)                                     \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                              \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(A, B, C, TYPE, NAME, ...)                                  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                              \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__) AT_DISPATCH_CASE(C, __VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                         \
  [&] {                                                                                  \
    using capstone_torch_kind = ::c10::ScalarType;                                       \
    if (::capstone_torch::type_of(TYPE) == capstone_torch_kind::Int) {                   \
      using index_t [[maybe_unused]] = int;                                              \
      return __VA_ARGS__();                                                              \
    }                                                                                    \
    TORCH_CHECK(::capstone_torch::type_of(TYPE) == capstone_torch_kind::Long, '"', NAME, \
                "\" not implemented for '", TYPE, "'");                                  \
    using index_t [[maybe_unused]] = std::int64_t;                                       \
    return __VA_ARGS__();                                                                \
  }()

namespace torch {
using namespace at;
using at::Tensor;  // a class of the source may have such a name, too
using Dtype = c10::ScalarType;
namespace cuda {
using namespace at::cuda;
inline void synchronize(std::int64_t = -1) { device_synchronize(); }
}  // namespace cuda
constexpr c10::ScalarType float16 = kHalf, bfloat16 = kBFloat16, float32 = kFloat, float64 = kDouble,
                          int32 = kInt, int64 = kLong, uint8 = kByte, int8 = kChar;
struct NoGradGuard {
  NoGradGuard() {}
};
namespace autograd {
template <class T>
struct Function {
  static_assert(sizeof(T) == 0,
                "the stand-in for PyTorch has no torch::autograd: derive a "
                "torch.autograd.Function in Python, around the extension");
};
}  // namespace autograd
}  // namespace torch
