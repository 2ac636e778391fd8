#pragma once
// Rounding between float and the narrow types, with integer operations only, so that host and device agree to
// the bit. For host and nvcc device code; C++17; no libm.
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define CAPSTONE_HD __host__ __device__ __forceinline__
#else
#define CAPSTONE_HD inline __attribute__((always_inline))
#endif

namespace capstone::narrow {

CAPSTONE_HD std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

CAPSTONE_HD float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

/// Rounds a finite magnitude (sign bit clear) to nearest, ties to even, in a format of kExponent exponent and
/// kMantissa mantissa bits with the usual bias. Subnormals are kept. Overflow continues into larger codes;
/// the caller saturates.
template <int kExponent, int kMantissa>
CAPSTONE_HD std::uint32_t round_magnitude(std::uint32_t magnitude) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr int kLeast = 127 - kBias + 1;  // float's biased exponent of the format's smallest normal
  constexpr int kDrop = 23 - kMantissa;
  const int exponent = static_cast<int>(magnitude >> 23);
  // Normal: change the bias, then add just under half. A carry moves into the exponent without extra work.
  const std::uint32_t rebiased = magnitude - (static_cast<std::uint32_t>(127 - kBias) << 23);
  const std::uint32_t normal = (rebiased + (1u << (kDrop - 1)) - 1 + ((rebiased >> kDrop) & 1)) >> kDrop;
  // Subnormal: the hidden bit becomes explicit, and the mantissa is shifted right by the missing exponent.
  const std::uint32_t mantissa = exponent ? (magnitude & 0x7fffffu) | 0x800000u : magnitude;
  const int lacking = kLeast - (exponent ? exponent : 1);
  const int shift = lacking <= 0 ? kDrop : (lacking + kDrop > 25 ? 25 : lacking + kDrop);
  const std::uint32_t subnormal = (mantissa + (1u << (shift - 1)) - 1 + ((mantissa >> shift) & 1)) >> shift;
  return exponent >= kLeast ? normal : subnormal;
}

/// IEEE half; overflow gives infinity, every NaN 0x7fff, as __float2half_rn.
CAPSTONE_HD std::uint16_t to_f16(float value) {
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;
  const std::uint32_t code = round_magnitude<5, 10>(magnitude);
  const std::uint32_t finite = (magnitude >= 0x47800000u || code > 0x7c00u) ? 0x7c00u : code;
  return static_cast<std::uint16_t>(magnitude > 0x7f800000u ? 0x7fffu : (sign | finite));
}

/// bfloat16; overflow gives infinity, every NaN 0x7fff, as __float2bfloat16_rn.
CAPSTONE_HD std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>(magnitude > 0x7f800000u ? 0x7fffu : rounded);
}

/// FP8 with 4 exponent bits: saturates to ±448, every NaN 0x7f, as __nv_cvt_float_to_fp8 with SATFINITE.
CAPSTONE_HD std::uint8_t to_e4m3(float value) {
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu, sign = (bits >> 24) & 0x80u;
  const std::uint32_t code = round_magnitude<4, 3>(magnitude);
  const std::uint32_t finite = (magnitude >= 0x44000000u || code > 0x7eu) ? 0x7eu : code;
  return static_cast<std::uint8_t>(magnitude > 0x7f800000u ? 0x7fu : (sign | finite));
}

/// FP8 with 5 exponent bits: saturates to ±57344, every NaN 0x7f, as __nv_cvt_float_to_fp8 with SATFINITE.
CAPSTONE_HD std::uint8_t to_e5m2(float value) {
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu, sign = (bits >> 24) & 0x80u;
  const std::uint32_t code = round_magnitude<5, 2>(magnitude);
  const std::uint32_t finite = (magnitude >= 0x47800000u || code > 0x7bu) ? 0x7bu : code;
  return static_cast<std::uint8_t>(magnitude > 0x7f800000u ? 0x7fu : (sign | finite));
}

/// Widens a format of kExponent and kMantissa bits, sign on top, infinities and NaN as in IEEE 754. Exact.
template <int kExponent, int kMantissa>
CAPSTONE_HD float widen(std::uint32_t code) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr std::uint32_t kTop = (1u << kExponent) - 1;
  const std::uint32_t sign = (code >> (kExponent + kMantissa)) << 31;
  const std::uint32_t exponent = (code >> kMantissa) & kTop;
  const std::uint32_t mantissa = code & ((1u << kMantissa) - 1);
  // 2^(1 - kBias - kMantissa) is the value of one unit of a subnormal: an exact product, no rounding.
  const float unit = float_of(static_cast<std::uint32_t>(127 + 1 - kBias - kMantissa) << 23);
  const std::uint32_t subnormal = bits_of(static_cast<float>(static_cast<std::int32_t>(mantissa)) * unit);
  const std::uint32_t normal = ((exponent + 127 - kBias) << 23) | (mantissa << (23 - kMantissa));
  const std::uint32_t special = 0x7f800000u | (mantissa << (23 - kMantissa));
  return float_of(sign | (exponent == 0 ? subnormal : exponent == kTop ? special : normal));
}

CAPSTONE_HD float from_f16(std::uint16_t code) { return widen<5, 10>(code); }
CAPSTONE_HD float from_bf16(std::uint16_t code) { return float_of(static_cast<std::uint32_t>(code) << 16); }
CAPSTONE_HD float from_e5m2(std::uint8_t code) { return widen<5, 2>(code); }
CAPSTONE_HD float from_e4m3(std::uint8_t code) {
  // The format has no infinity: exponent 15 is ordinary, and only its mantissa 7 is NaN.
  const std::uint32_t magnitude = code & 0x7fu, sign = static_cast<std::uint32_t>(code & 0x80u) << 24;
  const std::uint32_t top = sign | ((8u + 127u) << 23) | ((magnitude & 7u) << 20);
  const std::uint32_t special = magnitude == 0x7fu ? (sign | 0x7fc00000u) : top;
  return magnitude >= 0x78u ? float_of(special) : widen<4, 3>(code);
}

}  // namespace capstone::narrow
