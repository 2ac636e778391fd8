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

/// FP4 with 2 exponent bits, in the low four bits: saturates to ±6; the format has no NaN, and every NaN
/// becomes 6 (code 7), as with __nv_cvt_float_to_fp4.
CAPSTONE_HD std::uint8_t to_e2m1(float value) {
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu, sign = (bits >> 28) & 8u;
  const std::uint32_t code = round_magnitude<2, 1>(magnitude);
  const std::uint32_t finite = (magnitude >= 0x40c00000u || code > 7u) ? 7u : code;
  return static_cast<std::uint8_t>(magnitude > 0x7f800000u ? 7u : (sign | finite));
}

/// A power of two, from 2^-127 (code 0) to 2^127: to nearest, a tie to the larger one (a significand of one
/// bit is odd on both sides). The sign is dropped, every NaN 0xff; what is too small or too large saturates.
CAPSTONE_HD std::uint8_t to_e8m0(float value) {
  const std::uint32_t magnitude = bits_of(value) & 0x7fffffffu;
  // Below 2^-126 float has no implicit one: 3 * 2^-128 is the middle of codes 0 and 1.
  const std::uint32_t code =
      magnitude < 0x800000u ? (magnitude >= 0x600000u ? 1u : 0u) : (magnitude + 0x400000u) >> 23;
  return static_cast<std::uint8_t>(magnitude > 0x7f800000u ? 0xffu : code > 0xfeu ? 0xfeu : code);
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
/// FP4: the low four bits. 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; no infinity, no NaN.
CAPSTONE_HD float from_e2m1(std::uint8_t code) {
  const std::uint32_t exponent = (code >> 1) & 3u, mantissa = code & 1u;
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 8u) << 28;
  const std::uint32_t subnormal = mantissa ? 0x3f000000u : 0u;  // 0.5, or 0
  const std::uint32_t normal = ((exponent + 126u) << 23) | (mantissa << 22);
  return float_of(sign | (exponent == 0 ? subnormal : normal));
}
/// 2^(code - 127); 255 is NaN.
CAPSTONE_HD float from_e8m0(std::uint8_t code) {
  const std::uint32_t bits = static_cast<std::uint32_t>(code) << 23;
  return float_of(code == 0 ? 0x00400000u : code == 0xffu ? 0x7fc00000u : bits);
}
/// The low four bits in two's complement: -8 … 7.
CAPSTONE_HD int from_int4(std::uint8_t code) { return static_cast<int>((code & 15u) ^ 8u) - 8; }

/// Element i of a packed tensor, as a code in four bits, and its store. The other half of the byte stays: two
/// threads may not store into one byte.
CAPSTONE_HD std::uint8_t nibble_at(const void* tensor, std::int64_t i) {
  const std::uint8_t pair = static_cast<const std::uint8_t*>(tensor)[i >> 1];
  return static_cast<std::uint8_t>((i & 1) ? pair >> 4 : pair & 15u);
}
CAPSTONE_HD void store_nibble(void* tensor, std::int64_t i, std::uint8_t code) {
  std::uint8_t& pair = static_cast<std::uint8_t*>(tensor)[i >> 1];
  const unsigned kept = (i & 1) ? pair & 0x0fu : pair & 0xf0u;
  pair = static_cast<std::uint8_t>(kept | ((i & 1) ? (code & 15u) << 4 : code & 15u));
}

}  // namespace capstone::narrow
