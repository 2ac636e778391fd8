#pragma once
#pragma GCC system_header
// Functions of CUDA's math library that the host's lacks. They are computed in a wider type and rounded once.
#include <cmath>
#include <limits>

namespace capstone_emu {

template <class T>
using Wider = std::conditional_t<sizeof(T) == 4, double, long double>;
inline constexpr long double kPi = 3.141592653589793238462643383279502884L, kSqrtPi = 1.772453850905516027298167483341145183L,
                             kSqrt2 = 1.414213562373095048801688724209698079L;

// ---- lengths: an infinite coordinate outweighs NaN --------------------------------------------------------
template <class T, class... More>
inline Wider<T> length(T first, More... more) {
  if (std::isinf(first) || (std::isinf(more) || ...)) return std::numeric_limits<T>::infinity();
  Wider<T> sum = Wider<T>{first} * first;
  ((sum += Wider<T>{more} * more), ...);
  return std::sqrt(sum);
}
template <class T>
inline Wider<T> length_of(int count, const T* coordinates) {
  Wider<T> sum = 0;
  bool infinite = false;
  for (int i = 0; i < count; ++i) {
    infinite = infinite || std::isinf(coordinates[i]);
    sum += Wider<T>{coordinates[i]} * coordinates[i];
  }
  return infinite ? std::numeric_limits<T>::infinity() : std::sqrt(sum);
}

// ---- sin(pi x), cos(pi x) ---------------------------------------------------------------------------------
template <class W>
inline W sine_of_half_turn(W x) {  // |x| <= 1
  const W magnitude = std::fabs(x);
  return std::copysign(std::sin(static_cast<W>(kPi) * (magnitude > W(0.5) ? 1 - magnitude : magnitude)), x);
}
template <class T>
inline T sine_of_turns(T x) {
  const Wider<T> wide = x;
  return static_cast<T>(sine_of_half_turn(wide - 2 * std::rint(wide / 2)));
}
template <class T>
inline T cosine_of_turns(T x) {
  const Wider<T> wide = x;
  return static_cast<T>(sine_of_half_turn(Wider<T>(0.5) - std::fabs(wide - 2 * std::rint(wide / 2))));
}

// ---- inverses of the error function -----------------------------------------------------------------------
/// x of which erfc(x) = q (or erf(x) = 1 - q, if that is given), 0 < q <= 1.
inline long double inverse_error(long double q, const long double* erf_value) {
  // Abramowitz and Stegun 26.2.23 is right to three digits; each of Halley's steps triples them.
  const long double t = std::sqrt(-2 * std::log(q / 2));
  long double x = (t - (2.515517L + t * (0.802853L + t * 0.010328L)) / (1 + t * (1.432788L + t * (0.189269L + t * 0.001308L)))) / kSqrt2;
  for (int step = 0; step < 3; ++step) {
    const long double excess = erf_value ? *erf_value - std::erf(x) : std::erfc(x) - q;
    const long double newton = excess * kSqrtPi / 2 * std::exp(x * x);
    x += newton / (1 - x * newton);
  }
  return x;
}
inline long double inverse_erf(long double y) {
  const long double magnitude = std::fabs(y);
  if (!(magnitude <= 1)) return std::numeric_limits<long double>::quiet_NaN();
  if (magnitude == 1) return y * std::numeric_limits<long double>::infinity();
  if (magnitude == 0) return y;
  return std::copysign(inverse_error(1 - magnitude, magnitude <= 0.5L ? &magnitude : nullptr), y);
}
inline long double inverse_erfc(long double q) {
  if (!(q >= 0 && q <= 2)) return std::numeric_limits<long double>::quiet_NaN();
  if (q == 0) return std::numeric_limits<long double>::infinity();
  if (q > 0.5L) return inverse_erf(1 - q);
  return inverse_error(q, nullptr);
}

/// exp(x * x) * erfc(x)
inline long double scaled_erfc(long double x) {
  if (!(x >= 10)) return std::exp(x * x) * std::erfc(x);
  long double term = 1, sum = 1;
  const long double step = -1 / (2 * x * x);
  for (int k = 1; k < 40; k += 2) sum += term *= k * step;
  return sum / (x * kSqrtPi);
}

/// The modified Bessel function I of order 0 or 1: its power series has no terms that cancel.
inline long double bessel_i(int order, long double x) {
  if (std::fabs(x) > 800) return order ? std::copysign(std::numeric_limits<long double>::infinity(), x) : std::numeric_limits<long double>::infinity();
  const long double square = x * x / 4;
  long double term = order ? x / 2 : 1, sum = term;
  for (int k = 1; std::fabs(term) > std::fabs(sum) * std::numeric_limits<long double>::epsilon() / 4; ++k) {
    term *= square / (static_cast<long double>(k) * (k + order));
    sum += term;
  }
  return sum;
}

}  // namespace capstone_emu

static inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
static inline double rsqrt(double x) { return 1. / sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
// Each for float, and for both types under the name of the double's.
#define CAPSTONE_MATH(name, expression)                                                                        \
  static inline double name(double x) { using T = double; return static_cast<T>(expression); }                 \
  static inline float name##f(float x) { using T = float; return static_cast<T>(expression); }                 \
  static inline float name(float x) { return name##f(x); }
CAPSTONE_MATH(rcbrt, 1 / std::cbrt(capstone_emu::Wider<T>{x}))
CAPSTONE_MATH(sinpi, capstone_emu::sine_of_turns<T>(x))
CAPSTONE_MATH(cospi, capstone_emu::cosine_of_turns<T>(x))
CAPSTONE_MATH(erfinv, capstone_emu::inverse_erf(x))
CAPSTONE_MATH(erfcinv, capstone_emu::inverse_erfc(x))
CAPSTONE_MATH(erfcx, capstone_emu::scaled_erfc(x))
CAPSTONE_MATH(normcdf, std::erfc(-capstone_emu::Wider<T>{x} / static_cast<capstone_emu::Wider<T>>(capstone_emu::kSqrt2)) / 2)
CAPSTONE_MATH(normcdfinv, -capstone_emu::kSqrt2 * capstone_emu::inverse_erfc(2 * static_cast<long double>(x)))
CAPSTONE_MATH(cyl_bessel_i0, capstone_emu::bessel_i(0, x))
CAPSTONE_MATH(cyl_bessel_i1, capstone_emu::bessel_i(1, x))
#undef CAPSTONE_MATH

#define CAPSTONE_LENGTHS(T, suffix)                                                                                             \
  static inline T rhypot##suffix(T a, T b) { return static_cast<T>(1 / capstone_emu::length<T>(a, b)); }                        \
  static inline T norm3d##suffix(T a, T b, T c) { return static_cast<T>(capstone_emu::length<T>(a, b, c)); }                    \
  static inline T norm4d##suffix(T a, T b, T c, T d) { return static_cast<T>(capstone_emu::length<T>(a, b, c, d)); }            \
  static inline T rnorm3d##suffix(T a, T b, T c) { return static_cast<T>(1 / capstone_emu::length<T>(a, b, c)); }               \
  static inline T rnorm4d##suffix(T a, T b, T c, T d) { return static_cast<T>(1 / capstone_emu::length<T>(a, b, c, d)); }       \
  static inline T norm##suffix(int count, const T* p) { return static_cast<T>(capstone_emu::length_of(count, p)); }             \
  static inline T rnorm##suffix(int count, const T* p) { return static_cast<T>(1 / capstone_emu::length_of(count, p)); }
CAPSTONE_LENGTHS(double, )
CAPSTONE_LENGTHS(float, f)
#undef CAPSTONE_LENGTHS

static inline void sincospi(double x, double* sine, double* cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
static inline void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
static inline void sincospi(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }

static inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
static inline long long llmin(long long a, long long b) { return a < b ? a : b; }
static inline long long llmax(long long a, long long b) { return a < b ? b : a; }
static inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
static inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
