#pragma once
#pragma GCC system_header
// 16-bit floating point, on bit patterns.
#include <cmath>
#include <cstdint>
#include <cstring>

namespace capstone_emu {

template <class To, class From>
inline To reinterpret_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes must agree");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

#if defined(__F16C__)
inline float half_to_float(std::uint16_t bits) {
  typedef short Shorts __attribute__((vector_size(16)));
  const Shorts in = {static_cast<short>(bits)};
  return __builtin_ia32_vcvtph2ps(in)[0];
}
inline std::uint16_t float_to_half(float value) {
  typedef float Floats __attribute__((vector_size(16)));
  const Floats in = {value};
  return static_cast<std::uint16_t>(__builtin_ia32_vcvtps2ph(in, 0)[0]);
}
#elif defined(__aarch64__)
inline float half_to_float(std::uint16_t bits) { return reinterpret_bits<__fp16>(bits); }
inline std::uint16_t float_to_half(float value) { return reinterpret_bits<std::uint16_t>(static_cast<__fp16>(value)); }
#else
inline float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, mantissa = bits & 0x3ffu;
  if (exponent == 31) return reinterpret_bits<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent) return reinterpret_bits<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}
inline std::uint16_t float_to_half(float value) {  // round to nearest, ties to even
  const std::uint32_t bits = reinterpret_bits<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const float magnitude = fabsf(value);
  if (!(magnitude == magnitude)) return sign | 0x7e00u;
  if (magnitude >= 65520.f) return sign | 0x7c00u;
  if (magnitude < 0x1p-14f) return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(rintf(magnitude * 0x1p24f)));
  const std::uint32_t word = reinterpret_bits<std::uint32_t>(magnitude);
  return static_cast<std::uint16_t>(sign | ((word + 0xfffu + (word >> 13 & 1u) - (112u << 23)) >> 13));
}
#endif

inline float bfloat_to_float(std::uint16_t bits) {
  return reinterpret_bits<float>(static_cast<std::uint32_t>(bits) << 16);
}
inline std::uint16_t float_to_bfloat(float value) {  // round to nearest, ties to even
  const std::uint32_t bits = reinterpret_bits<std::uint32_t>(value);
  if (!(value == value)) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
/// An integer, rounded once: 'z' towards zero, 'd' down, 'u' up.
template <char kDirection, class Integer>
inline std::uint16_t integer_to_bfloat(Integer value) {
  if (value == 0) return 0;
  const bool negative = value < 0;
  const std::uint64_t word = static_cast<std::uint64_t>(value), magnitude = negative ? 0 - word : word;
  const int exponent = 63 - __builtin_clzll(magnitude);
  const std::uint64_t left = magnitude << (63 - exponent);  // the leading one is the top bit; eight bits stay
  std::uint32_t bits = static_cast<std::uint32_t>(exponent + 127) << 7 | (static_cast<std::uint32_t>(left >> 56) & 0x7fu);
  if ((left << 8) != 0 && kDirection == (negative ? 'd' : 'u')) ++bits;
  return static_cast<std::uint16_t>(bits | (negative ? 0x8000u : 0));
}

/// double → float with the last bit made sticky, so that rounding the result to a narrower type rounds only
/// once.
inline float round_to_odd_float(double value) {
  float rounded = static_cast<float>(value);
  if (static_cast<double>(rounded) == value || !__builtin_isfinite(rounded)) return rounded;
  std::uint32_t bits;
  std::memcpy(&bits, &rounded, 4);
  const bool away = (static_cast<double>(rounded) > value) == (value > 0);  // the magnitude was rounded up
  if (away) bits -= 1;
  bits |= 1;
  std::memcpy(&rounded, &bits, 4);
  return rounded;
}

/// x * y + z with a sticky last bit: to be rounded once to a type with at most 11 bits of mantissa.
inline float fused_to_odd(float x, float y, float z) {
  const double product = static_cast<double>(x) * y;  // exact
  double sum = product + z;
  const double of_z = sum - product, lost = (product - (sum - of_z)) + (z - of_z);
  if (lost != 0 && __builtin_isfinite(sum) && !(reinterpret_bits<std::uint64_t>(sum) & 1))
    sum = std::nextafter(sum, lost > 0 ? HUGE_VAL : -HUGE_VAL);
  return round_to_odd_float(sum);
}

inline float e4m3_to_float(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return reinterpret_bits<float>(0x7fc00000u);
  const float magnitude = exponent ? ldexpf(static_cast<float>(8 + mantissa), exponent - 10) : static_cast<float>(mantissa) * 0x1p-9f;
  return bits & 0x80 ? -magnitude : magnitude;
}
/// An 8-bit float with `mantissa_bits` of mantissa: nearest, ties to even; what is too large becomes the
/// largest finite one.
inline std::uint8_t float_to_fp8(float value, int mantissa_bits) {
  const int bias = mantissa_bits == 3 ? 7 : 15;
  const float most = mantissa_bits == 3 ? 448.f : 57344.f;
  const std::uint8_t sign = reinterpret_bits<std::uint32_t>(value) >> 24 & 0x80u;
  float magnitude = fabsf(value);
  if (!(magnitude == magnitude)) return 0x7f;
  if (magnitude > most) magnitude = most;
  int exponent = 0;
  frexpf(magnitude, &exponent);  // magnitude in [0.5, 1) * 2^exponent
  int scale = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
  int units = static_cast<int>(rintf(ldexpf(magnitude, mantissa_bits - scale)));  // of the last place
  if (units >> (mantissa_bits + 1)) {
    units >>= 1;
    ++scale;
  }
  const bool normal = units >> mantissa_bits != 0;
  const int field = normal ? scale + bias : 0;
  const std::uint8_t bits = static_cast<std::uint8_t>(field << mantissa_bits | (units & ((1 << mantissa_bits) - 1)));
  return sign | bits;
}

}  // namespace capstone_emu
