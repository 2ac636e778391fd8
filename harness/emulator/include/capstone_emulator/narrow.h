#pragma once
#pragma GCC system_header
// 16-bit floating point, on bit patterns.
#include "intrinsics.h"

namespace capstone_emu {

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

inline std::uint16_t float_to_bfloat(float value) {  // round to nearest, ties to even
  const std::uint32_t bits = reinterpret_bits<std::uint32_t>(value);
  if (!(value == value)) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace capstone_emu
