#pragma once
#pragma GCC system_header
// Scalar device functions that nvcc knows without a header.
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core.h"
#include "math_functions.h"
#include "narrow.h"

// glibc declares __expf and similar names for its own use.
#define __expf capstone_emu_expf
#define __exp2f capstone_emu_exp2f
#define __exp10f capstone_emu_exp10f
#define __logf capstone_emu_logf
#define __log2f capstone_emu_log2f
#define __log10f capstone_emu_log10f
#define __sinf capstone_emu_sinf
#define __cosf capstone_emu_cosf
#define __tanf capstone_emu_tanf
#define __powf capstone_emu_powf
#define __sincosf capstone_emu_sincosf
#define __tanhf capstone_emu_tanhf

// ---- loads and stores with a cache hint -------------------------------------------------------------------
#define CAPSTONE_LOAD(name) \
  template <class T>        \
  inline T name(const T* address) { return *address; }
CAPSTONE_LOAD(__ldg)
CAPSTONE_LOAD(__ldca)
CAPSTONE_LOAD(__ldcs)
CAPSTONE_LOAD(__ldlu)
#undef CAPSTONE_LOAD
// These two see what others have written: code spins on them.
template <class T>
inline T __ldcg(const T* address) {
  capstone_emu::loop_hint();
  asm volatile("" ::: "memory");
  return *address;
}
template <class T>
inline T __ldcv(const T* address) {
  capstone_emu::loop_hint();
  asm volatile("" ::: "memory");
  return *address;
}
// The value is converted to what stands there.
#define CAPSTONE_STORE(name) \
  template <class T>         \
  inline void name(T* address, std::enable_if_t<true, T> value) { *address = value; }
CAPSTONE_STORE(__stwb)
CAPSTONE_STORE(__stcg)
CAPSTONE_STORE(__stcs)
CAPSTONE_STORE(__stwt)
#undef CAPSTONE_STORE

// ---- fast and rounded arithmetic --------------------------------------------------------------------------
static inline float __expf(float x) { return expf(x); }
static inline float __exp2f(float x) { return exp2f(x); }
static inline float __exp10f(float x) { return powf(10.f, x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __tanhf(float x) { return tanhf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline void __sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
static inline float fdividef(float a, float b) { return a / b; }

// These functions promise that a product and a sum are not fused.
namespace capstone_emu {
template <class T>
inline T unfused(T value) {
  asm volatile("" : "+g"(value));
  return value;
}
/// What the compiler must not compute before or after this place.
template <class T>
inline T held(T value) {
  asm volatile("" : "+g"(value) : : "memory");
  return value;
}
/// Modes of rounding; rewritten code has been preprocessed, so that it needs names for them.
inline constexpr int kNearest = FE_TONEAREST, kTowardsZero = FE_TOWARDZERO, kUp = FE_UPWARD, kDown = FE_DOWNWARD;
/// The value of a function of numbers in a mode of rounding.
template <int kMode, class Function, class... Values>
inline auto in_mode(Function function, Values... values) {
  if constexpr (kMode == kNearest) {
    return function(values...);
  } else {
    const int before = std::fegetround();
    std::fesetround(kMode);
    auto result = function(held(values)...);
    result = held(result);
    std::fesetround(before);
    return result;
  }
}
/// A conversion in a mode of rounding.
template <int kMode, class To, class From>
inline To converted(From value) {
  return in_mode<kMode>([](From x) { return static_cast<To>(x); }, value);
}
}  // namespace capstone_emu
#define CAPSTONE_ROUNDED_UNARY(name, suffix, mode, T, value) \
  static inline T name##_##suffix(T a) {                     \
    return capstone_emu::in_mode<mode>([](T x) { return value; }, a); \
  }
#define CAPSTONE_ROUNDED_BINARY(name, suffix, mode, T, value) \
  static inline T name##_##suffix(T a, T b) {                 \
    return capstone_emu::in_mode<mode>([](T x, T y) { return capstone_emu::unfused(value); }, a, b); \
  }
#define CAPSTONE_ROUNDED_FMA(name, suffix, mode, T, function) \
  static inline T name##_##suffix(T a, T b, T c) {            \
    return capstone_emu::in_mode<mode>([](T x, T y, T z) { return function(x, y, z); }, a, b, c); \
  }
#define CAPSTONE_ROUNDED(suffix, mode)                                   \
  CAPSTONE_ROUNDED_BINARY(__fadd, suffix, mode, float, x + y)            \
  CAPSTONE_ROUNDED_BINARY(__fsub, suffix, mode, float, x - y)            \
  CAPSTONE_ROUNDED_BINARY(__fmul, suffix, mode, float, x * y)            \
  CAPSTONE_ROUNDED_BINARY(__fdiv, suffix, mode, float, x / y)            \
  CAPSTONE_ROUNDED_FMA(__fmaf, suffix, mode, float, fmaf)                \
  CAPSTONE_ROUNDED_FMA(__fmaf_ieee, suffix, mode, float, fmaf)           \
  CAPSTONE_ROUNDED_UNARY(__frcp, suffix, mode, float, 1.f / x)           \
  CAPSTONE_ROUNDED_UNARY(__fsqrt, suffix, mode, float, sqrtf(x))         \
  CAPSTONE_ROUNDED_BINARY(__dadd, suffix, mode, double, x + y)           \
  CAPSTONE_ROUNDED_BINARY(__dmul, suffix, mode, double, x * y)           \
  CAPSTONE_ROUNDED_BINARY(__dsub, suffix, mode, double, x - y)           \
  CAPSTONE_ROUNDED_BINARY(__ddiv, suffix, mode, double, x / y)           \
  CAPSTONE_ROUNDED_UNARY(__drcp, suffix, mode, double, 1. / x)           \
  CAPSTONE_ROUNDED_UNARY(__dsqrt, suffix, mode, double, sqrt(x))         \
  CAPSTONE_ROUNDED_FMA(__fma, suffix, mode, double, fma)
CAPSTONE_ROUNDED(rn, capstone_emu::kNearest)
CAPSTONE_ROUNDED(rz, capstone_emu::kTowardsZero)
CAPSTONE_ROUNDED(ru, capstone_emu::kUp)
CAPSTONE_ROUNDED(rd, capstone_emu::kDown)
#undef CAPSTONE_ROUNDED
#undef CAPSTONE_ROUNDED_UNARY
#undef CAPSTONE_ROUNDED_BINARY
#undef CAPSTONE_ROUNDED_FMA
static inline float __frsqrt_rn(float a) { return 1.f / sqrtf(a); }

// ---- bits -------------------------------------------------------------------------------------------------
static inline int __float_as_int(float x) { return capstone_emu::reinterpret_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return capstone_emu::reinterpret_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return capstone_emu::reinterpret_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return capstone_emu::reinterpret_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return capstone_emu::reinterpret_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return capstone_emu::reinterpret_bits<double>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
static inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 | __brev(static_cast<unsigned>(x >> 32));
}
namespace capstone_emu::ptx {
/// prmt.b32: a selector of 8 or more repeats the sign of its byte.
inline unsigned permute_bytes(unsigned low, unsigned high, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> (4 * i);
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (pick & 7))) & 0xffu;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
}  // namespace capstone_emu::ptx
/// Three bits of each selector count: unlike prmt it repeats no sign.
static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  return capstone_emu::ptx::permute_bytes(low, high, selector & 0x7777);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}

static inline unsigned short __nv_bswap16(unsigned short x) { return __builtin_bswap16(x); }
static inline unsigned __nv_bswap32(unsigned x) { return __builtin_bswap32(x); }
static inline unsigned long long __nv_bswap64(unsigned long long x) { return __builtin_bswap64(x); }
/// The n-th set bit from `base` on, upwards, or downwards for a negative n; n = 0 means `base` itself.
static inline unsigned __fns(unsigned mask, unsigned base, int n) {
  const int step = n < 0 ? -1 : 1;
  int left = n < 0 ? -n : n;
  if (left == 0) return base < 32 && (mask >> base & 1u) ? base : ~0u;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step)
    if ((mask >> at & 1u) && --left == 0) return static_cast<unsigned>(at);
  return ~0u;
}

// ---- integers ---------------------------------------------------------------------------------------------
static inline int __mul24(int a, int b) { return static_cast<int>((static_cast<long long>(a << 8 >> 8)) * (b << 8 >> 8)); }
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
static inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
static inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
static inline unsigned __sad(int a, int b, unsigned sum) {
  return sum + static_cast<unsigned>(a < b ? b - a : a - b);
}
static inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
  return c;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> (8 * i) & 0xffu) * (b >> (8 * i) & 0xffu);
  return c;
}

#include "simd_intrinsics.h"

// ---- conversions: out of range saturates, as it does on the device ----------------------------------------
namespace capstone_emu {
/// NaN becomes 0, or the top bit alone where one of the types has 64 bits.
template <class Integer, class Float>
inline Integer saturate_to(Float number) {
  const double x = number;
  if (!(x == x)) return sizeof(Integer) == 8 || sizeof(Float) == 8 ? static_cast<Integer>(Integer(1) << (sizeof(Integer) * 8 - 1)) : 0;
  if (x <= static_cast<double>(static_cast<Integer>(std::is_signed_v<Integer> ? Integer(1) << (sizeof(Integer) * 8 - 1) : 0)))
    return std::is_signed_v<Integer> ? static_cast<Integer>(Integer(1) << (sizeof(Integer) * 8 - 1)) : 0;
  const Integer most = static_cast<Integer>(~static_cast<Integer>(0)) > 0
                           ? static_cast<Integer>(~static_cast<Integer>(0))
                           : static_cast<Integer>(~(Integer(1) << (sizeof(Integer) * 8 - 1)));
  if (x >= static_cast<double>(most)) return most;
  return static_cast<Integer>(x);
}
}  // namespace capstone_emu
#define CAPSTONE_CONVERT(suffix, round, mode)                                                                           \
  static inline int __float2int_##suffix(float x) { return capstone_emu::saturate_to<int>(round(x)); }             \
  static inline unsigned __float2uint_##suffix(float x) { return capstone_emu::saturate_to<unsigned>(round(x)); }  \
  static inline long long __float2ll_##suffix(float x) { return capstone_emu::saturate_to<long long>(round(x)); }  \
  static inline int __double2int_##suffix(double x) { return capstone_emu::saturate_to<int>(round(x)); }           \
  static inline float __int2float_##suffix(int x) { return capstone_emu::converted<capstone_emu::mode, float>(x); }                                \
  static inline float __uint2float_##suffix(unsigned x) { return capstone_emu::converted<capstone_emu::mode, float>(x); }                          \
  static inline float __ll2float_##suffix(long long x) { return capstone_emu::converted<capstone_emu::mode, float>(x); }                           \
  static inline float __double2float_##suffix(double x) { return capstone_emu::converted<capstone_emu::mode, float>(x); }                          \
  static inline unsigned long long __float2ull_##suffix(float x) { return capstone_emu::saturate_to<unsigned long long>(round(x)); } \
  static inline unsigned __double2uint_##suffix(double x) { return capstone_emu::saturate_to<unsigned>(round(x)); } \
  static inline long long __double2ll_##suffix(double x) { return capstone_emu::saturate_to<long long>(round(x)); } \
  static inline unsigned long long __double2ull_##suffix(double x) { return capstone_emu::saturate_to<unsigned long long>(round(x)); } \
  static inline float __ull2float_##suffix(unsigned long long x) { return capstone_emu::converted<capstone_emu::mode, float>(x); }                 \
  static inline double __ll2double_##suffix(long long x) { return capstone_emu::converted<capstone_emu::mode, double>(x); }                        \
  static inline double __ull2double_##suffix(unsigned long long x) { return capstone_emu::converted<capstone_emu::mode, double>(x); }
CAPSTONE_CONVERT(rn, rint, kNearest)
CAPSTONE_CONVERT(rz, trunc, kTowardsZero)
CAPSTONE_CONVERT(rd, floor, kDown)
CAPSTONE_CONVERT(ru, ceil, kUp)
#undef CAPSTONE_CONVERT
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned x) { return x; }
static inline int __double2hiint(double x) { return static_cast<int>(capstone_emu::reinterpret_bits<std::uint64_t>(x) >> 32); }
static inline int __double2loint(double x) { return static_cast<int>(capstone_emu::reinterpret_bits<std::uint64_t>(x)); }
static inline double __hiloint2double(int high, int low) {
  return capstone_emu::reinterpret_bits<double>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low));
}

// ---- clocks, traps, addresses -----------------------------------------------------------------------------
static inline long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
static inline void __trap(CAPSTONE_SITE) { capstone_emu::trap(file, line, "__trap()"); }
static inline void __brkpt() {}
static inline void __prof_trigger(int) {}
static inline std::size_t __cvta_generic_to_shared(const void* p) { return capstone_emu::shared_address(p); }
static inline std::size_t __cvta_generic_to_global(const void* p) { return reinterpret_cast<std::size_t>(p); }
static inline std::size_t __cvta_generic_to_local(const void* p) { return reinterpret_cast<std::size_t>(p); }
static inline std::size_t __cvta_generic_to_constant(const void* p) { return reinterpret_cast<std::size_t>(p); }
static inline std::size_t __cvta_generic_to_grid_constant(const void* p) { return reinterpret_cast<std::size_t>(p); }
static inline void* __cvta_local_to_generic(std::size_t a) { return reinterpret_cast<void*>(a); }
static inline void* __cvta_constant_to_generic(std::size_t a) { return reinterpret_cast<void*>(a); }
static inline void* __cvta_grid_constant_to_generic(std::size_t a) { return reinterpret_cast<void*>(a); }
static inline void* __cvta_shared_to_generic(std::size_t a) { return capstone_emu::from_shared_address(a); }
static inline void* __cvta_global_to_generic(std::size_t a) { return reinterpret_cast<void*>(a); }
static inline unsigned __isShared(const void* p) {
  const char* address = static_cast<const char*>(p);
  return capstone_emu::is_shared(address);
}
static inline unsigned __isLocal(const void* p) { return capstone_emu::is_local(p); }
static inline unsigned __isGlobal(const void* p) { return !__isShared(p) && !__isLocal(p); }

// ---- min and max without std:: ----------------------------------------------------------------------------
template <class A, class B>
constexpr std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>> min(A a, B b) {
  using C = std::common_type_t<A, B>;
  return static_cast<C>(b) < static_cast<C>(a) ? static_cast<C>(b) : static_cast<C>(a);
}
template <class A, class B>
constexpr std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>> max(A a, B b) {
  using C = std::common_type_t<A, B>;
  return static_cast<C>(a) < static_cast<C>(b) ? static_cast<C>(b) : static_cast<C>(a);
}
// No templates, so that they are better than a library's (cute::min) for these types, as CUDA's are.
#define CAPSTONE_MIN_MAX(T)                             \
  constexpr T min(T a, T b) { return min<T, T>(a, b); } \
  constexpr T max(T a, T b) { return max<T, T>(a, b); }
CAPSTONE_MIN_MAX(int)
CAPSTONE_MIN_MAX(unsigned)
CAPSTONE_MIN_MAX(long)
CAPSTONE_MIN_MAX(unsigned long)
CAPSTONE_MIN_MAX(long long)
CAPSTONE_MIN_MAX(unsigned long long)
CAPSTONE_MIN_MAX(float)
CAPSTONE_MIN_MAX(double)
#undef CAPSTONE_MIN_MAX
