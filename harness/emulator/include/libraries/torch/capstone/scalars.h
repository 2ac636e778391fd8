#pragma once
#pragma GCC system_header
// Of the stand-in for PyTorch's extension headers: numbers, their types, errors.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// What sources find through PyTorch's headers, and do not include themselves.
#include <algorithm>
#include <array>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace c10 {

/// What TORCH_CHECK() throws; a RuntimeError in Python.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
  const char* what_without_backtrace() const { return what(); }
};
struct IndexError : Error {
  using Error::Error;
};
struct ValueError : Error {
  using Error::Error;
};
struct NotImplementedError : Error {
  using Error::Error;
};

template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

/// A 16-bit number that computes in float; the layout and the conversions of `Native` (__half).
#define CAPSTONE_TORCH_NUMBER16(Name, Native, from_float, to_float)                                          \
  struct alignas(2) Name {                                                                                   \
    unsigned short x;                                                                                        \
    struct from_bits_t {};                                                                                   \
    static constexpr from_bits_t from_bits() { return {}; }                                                  \
    Name() = default;                                                                                        \
    constexpr Name(unsigned short bits, from_bits_t) : x(bits) {}                                            \
    Name(float value) { *this = Name(from_float(value)); }                                                   \
    Name(const Native& value) { __builtin_memcpy(&x, &value, sizeof x); }                                    \
    operator float() const { return to_float(static_cast<Native>(*this)); }                                  \
    operator Native() const {                                                                                \
      Native value;                                                                                          \
      __builtin_memcpy(&value, &x, sizeof x);                                                                \
      return value;                                                                                          \
    }                                                                                                        \
  };                                                                                                         \
  inline Name operator-(const Name& a) { return -static_cast<float>(a); }                                    \
  inline std::ostream& operator<<(std::ostream& out, const Name& a) { return out << static_cast<float>(a); } \
  CAPSTONE_TORCH_ARITHMETIC(Name, +)                                                                         \
  CAPSTONE_TORCH_ARITHMETIC(Name, -)                                                                         \
  CAPSTONE_TORCH_ARITHMETIC(Name, *)                                                                         \
  CAPSTONE_TORCH_ARITHMETIC(Name, /)                                                                         \
  CAPSTONE_TORCH_COMPARISON(Name, <)                                                                         \
  CAPSTONE_TORCH_COMPARISON(Name, >)                                                                         \
  CAPSTONE_TORCH_COMPARISON(Name, <=)                                                                        \
  CAPSTONE_TORCH_COMPARISON(Name, >=)                                                                        \
  CAPSTONE_TORCH_COMPARISON(Name, ==)                                                                        \
  CAPSTONE_TORCH_COMPARISON(Name, !=)
// With a whole number the result is of 16 bits, with another floating-point number it is of that one's type.
#define CAPSTONE_TORCH_ARITHMETIC(Name, op)                                            \
  inline Name operator op(const Name& a, const Name& b) {                              \
    return static_cast<float>(a) op static_cast<float>(b);                             \
  }                                                                                    \
  inline Name& operator op##=(Name& a, const Name& b) { return a = a op b; }           \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                \
  std::conditional_t<std::is_integral_v<T>, Name, T> operator op(const Name& a, T b) { \
    return static_cast<float>(a) op b;                                                 \
  }                                                                                    \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                \
  std::conditional_t<std::is_integral_v<T>, Name, T> operator op(T a, const Name& b) { \
    return a op static_cast<float>(b);                                                 \
  }                                                                                    \
  template <class T, class = std::enable_if_t<std::is_floating_point_v<T>>>            \
  T& operator op##=(T& a, const Name& b) {                                             \
    return a = a op static_cast<float>(b);                                             \
  }
#define CAPSTONE_TORCH_COMPARISON(Name, op)                             \
  inline bool operator op(const Name& a, const Name& b) {               \
    return static_cast<float>(a) op static_cast<float>(b);              \
  }                                                                     \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> \
  bool operator op(const Name& a, T b) {                                \
    return static_cast<float>(a) op b;                                  \
  }                                                                     \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> \
  bool operator op(T a, const Name& b) {                                \
    return a op static_cast<float>(b);                                  \
  }

CAPSTONE_TORCH_NUMBER16(Half, __half, __float2half, __half2float)
CAPSTONE_TORCH_NUMBER16(BFloat16, __nv_bfloat16, __float2bfloat16, __bfloat162float)

// Their numbers are those of PyTorch, and of harness/emulator/torch/capstone_torch.py.
#define CAPSTONE_TORCH_TYPES(_)                                                                              \
  _(std::uint8_t, Byte, 0)                                                                                   \
  _(std::int8_t, Char, 1) _(std::int16_t, Short, 2) _(int, Int, 3) _(std::int64_t, Long, 4) _(Half, Half, 5) \
      _(float, Float, 6) _(double, Double, 7) _(bool, Bool, 11) _(BFloat16, BFloat16, 15)

enum class ScalarType : std::int8_t {
#define CAPSTONE_TORCH_TYPE(type, name, number) name = number,
  CAPSTONE_TORCH_TYPES(CAPSTONE_TORCH_TYPE)
#undef CAPSTONE_TORCH_TYPE
      Undefined = 127
};
#define CAPSTONE_TORCH_TYPE(type, name, number) constexpr ScalarType k##name = ScalarType::name;
CAPSTONE_TORCH_TYPES(CAPSTONE_TORCH_TYPE)
#undef CAPSTONE_TORCH_TYPE
constexpr ScalarType kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble, kUInt8 = kByte, kInt8 = kChar,
                     kInt16 = kShort, kInt32 = kInt, kInt64 = kLong;

template <class T>
struct CppTypeToScalarType;
template <ScalarType>
struct ScalarTypeToCPPType;
#define CAPSTONE_TORCH_TYPE(cpp, name, number)                                               \
  template <>                                                                                \
  struct CppTypeToScalarType<cpp> : std::integral_constant<ScalarType, ScalarType::name> {}; \
  template <>                                                                                \
  struct ScalarTypeToCPPType<ScalarType::name> {                                             \
    using type = cpp;                                                                        \
  };
CAPSTONE_TORCH_TYPES(CAPSTONE_TORCH_TYPE)
#undef CAPSTONE_TORCH_TYPE
template <ScalarType type>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<type>::type;

inline const char* toString(ScalarType type) {
  switch (type) {
#define CAPSTONE_TORCH_TYPE(cpp, name, number) \
  case ScalarType::name:                       \
    return #name;
    CAPSTONE_TORCH_TYPES(CAPSTONE_TORCH_TYPE)
#undef CAPSTONE_TORCH_TYPE
    default:
      return "Undefined";
  }
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) { return out << toString(type); }

/// Calls `use` with a value of the type, whose value says nothing.
template <class Use>
auto with_type(ScalarType type, Use use) {
  switch (type) {
#define CAPSTONE_TORCH_TYPE(cpp, name, number) \
  case ScalarType::name:                       \
    return use(cpp());
    CAPSTONE_TORCH_TYPES(CAPSTONE_TORCH_TYPE)
#undef CAPSTONE_TORCH_TYPE
    default:
      throw Error(str("a tensor of the type ", type, " cannot be used here"));
  }
}
inline std::size_t elementSize(ScalarType type) {
  return with_type(type, [](auto value) { return sizeof value; });
}
inline bool isFloatingType(ScalarType type) {
  return type == kHalf || type == kFloat || type == kDouble || type == kBFloat16;
}
inline bool isIntegralType(ScalarType type, bool with_bool = false) {
  return type == kBool ? with_bool : !isFloatingType(type);
}

enum class DeviceType : std::int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
using DeviceIndex = std::int8_t;
struct Device {
  Device(DeviceType type = kCPU, DeviceIndex index = -1) : type_(type), index_(index) {}
  Device(const std::string& text) : type_(text.rfind("cuda", 0) == 0 ? kCUDA : kCPU) {}
  Device(const char* text) : Device(std::string(text)) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return is_cuda() && index_ < 0 ? 0 : index_; }
  bool has_index() const { return index() >= 0; }
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_cpu() const { return type_ == kCPU; }
  std::string str() const { return is_cuda() ? "cuda:0" : "cpu"; }
  bool operator==(const Device& other) const { return type_ == other.type_; }
  bool operator!=(const Device& other) const { return !(*this == other); }

 private:
  DeviceType type_;
  DeviceIndex index_ = -1;
};
inline std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }
inline std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << (type == kCUDA ? "cuda" : "cpu");
}

enum class Layout { Strided };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

/// A number whose type is known when it is used. long double holds every int64 and every double.
class Scalar {
 public:
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, Half> ||
                                              std::is_same_v<T, BFloat16>>>
  Scalar(T value) : value_(static_cast<long double>(value)), whole_(std::is_integral_v<T>) {}
  Scalar() : Scalar(0) {}
  template <class T>
  T to() const {
    if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(value_);
    return static_cast<float>(value_);
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  std::int64_t toLong() const { return to<std::int64_t>(); }
  int toInt() const { return to<int>(); }
  bool isIntegral(bool = false) const { return whole_; }
  bool isFloatingPoint() const { return !whole_; }

 private:
  long double value_;
  bool whole_;
};

/// A view of consecutive values, mostly sizes.
template <class T>
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const T* data, std::size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T>& all) : data_(all.data()), size_(all.size()) {}
  ArrayRef(const std::initializer_list<T>& all) : data_(all.begin()), size_(all.size()) {}
  template <std::size_t n>
  ArrayRef(const T (&all)[n]) : data_(all), size_(n) {}
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  std::vector<T> vec() const { return {begin(), end()}; }
  operator std::vector<T>() const { return vec(); }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (std::size_t i = 0; i < size_; ++i)
      if (!(data_[i] == other.data_[i])) return false;
    return true;
  }
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }
  friend std::ostream& operator<<(std::ostream& out, ArrayRef all) {
    out << "[";
    for (std::size_t i = 0; i < all.size(); ++i) out << (i ? ", " : "") << all[i];
    return out << "]";
  }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};
using IntArrayRef = ArrayRef<std::int64_t>;

using std::nullopt;
using std::optional;

}  // namespace c10

template <>
class std::numeric_limits<c10::Half> : public std::numeric_limits<float> {
 public:
  static constexpr int digits = 11;
  static constexpr c10::Half of(unsigned short bits) { return {bits, c10::Half::from_bits()}; }
  static constexpr c10::Half min() { return of(0x0400); }
  static constexpr c10::Half max() { return of(0x7BFF); }
  static constexpr c10::Half lowest() { return of(0xFBFF); }
  static constexpr c10::Half epsilon() { return of(0x1400); }
  static constexpr c10::Half infinity() { return of(0x7C00); }
  static constexpr c10::Half quiet_NaN() { return of(0x7E00); }
};
template <>
class std::numeric_limits<c10::BFloat16> : public std::numeric_limits<float> {
 public:
  static constexpr int digits = 8;
  static constexpr c10::BFloat16 of(unsigned short bits) { return {bits, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 min() { return of(0x0080); }
  static constexpr c10::BFloat16 max() { return of(0x7F7F); }
  static constexpr c10::BFloat16 lowest() { return of(0xFF7F); }
  static constexpr c10::BFloat16 epsilon() { return of(0x3C00); }
  static constexpr c10::BFloat16 infinity() { return of(0x7F80); }
  static constexpr c10::BFloat16 quiet_NaN() { return of(0x7FC0); }
};

namespace at {
using namespace c10;
}  // namespace at

// --- errors ------------------------------------------------------------------------------------------------
#define CAPSTONE_TORCH_THROW(Kind, condition, ...)                                                       \
  do {                                                                                                   \
    if (__builtin_expect(!(condition), 0))                                                               \
      throw ::c10::Kind(::capstone_torch::message("Expected " #condition " to be true", ##__VA_ARGS__)); \
  } while (false)
namespace capstone_torch {
inline std::string message(const char* otherwise) { return otherwise; }
template <class... Parts>
std::string message(const char*, const Parts&... parts) {
  return c10::str(parts...);
}
}  // namespace capstone_torch
#define TORCH_CHECK(condition, ...) CAPSTONE_TORCH_THROW(Error, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) CAPSTONE_TORCH_THROW(IndexError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) CAPSTONE_TORCH_THROW(ValueError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  CAPSTONE_TORCH_THROW(NotImplementedError, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) CAPSTONE_TORCH_THROW(Error, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY TORCH_INTERNAL_ASSERT
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_CHECK TORCH_CHECK
#define AT_ERROR(...) TORCH_CHECK(false, ##__VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b))
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b))
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b))
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b))
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b))
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b))
#define TORCH_WARN(...) \
  static_cast<void>(    \
      std::fprintf(stderr, "Warning: %s\n", ::capstone_torch::message("", ##__VA_ARGS__).c_str()))
#define TORCH_WARN_ONCE TORCH_WARN

#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#define C10_LIKELY(x) __builtin_expect(!!(x), 1)
#define C10_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define C10_RESTRICT __restrict__
#define C10_EXPORT
#define TORCH_API
#define C10_WARP_SIZE 32
#define C10_LAUNCH_BOUNDS_1(a) __launch_bounds__(a)
#define C10_LAUNCH_BOUNDS_2(a, b) __launch_bounds__(a, b)
