#pragma once
// The interface between the judge and a problem's oracle.cpp. An oracle is a shared object of capstone, or of
// the author of a user's problem; it never comes from a submission. No other header of capstone is needed.
#include <cmath>
#include <cstdint>

extern "C" {

/// One parameter of launch(), in signature order. Values of every dtype are given as stored bytes; a packed
/// type (int4x2, e2m1x2) has two elements in a byte, and its shape counts elements.
struct CapstoneTensor {
  const char* name;
  const char* dtype;  ///< "f32", "bf16", … ; scalars: the dtype of `scalar`
  const void* data;   ///< null for outputs and scalars; inout: the value before the launch
  const std::int64_t* shape;
  int dimensions;  ///< 0 for scalars
  double scalar;   ///< scalars only, after rounding to its dtype
};

/// A case: parameters in signature order, size symbols in the problem's order.
struct CapstoneCase {
  const CapstoneTensor* parameters;
  int parameter_count;
  const std::int64_t* sizes;
  int size_count;
};

/// Computes elements of one output in float64.
///
/// @param output   index of the output in the signature
/// @param indices  [count] flat, row-major element numbers
/// @param value    [count] the exact value, unrounded
/// @param scale    [count] the condition of each element: for sums of products the root of the sum of their
/// squares
///                 (what independent input roundings add up to) or the sum of |a||b|, |value| where the
///                 rounding of the result itself is all that matters; tolerance is atol*scale + rtol*|value|
/// Deterministic, re-entrant: called from several threads for different index ranges.
void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices, std::int64_t count,
                     double* value, double* scale);
}

/// Help for oracles that read or round small types. Everything is exact in double.
namespace capstone_types {

/// Element i of a tensor of int4x2: -8 … 7, the first of a byte in its low half.
inline int int4_at(const void* data, std::int64_t i) {
  const unsigned pair = static_cast<const std::uint8_t*>(data)[i / 2];
  return static_cast<int>(((i % 2 ? pair >> 4 : pair) & 15u) ^ 8u) - 8;
}

/// The value of an fp4 code: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and, from 8 on, their negatives.
inline double e2m1_value(unsigned code) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8u ? -kMagnitudes[code & 7u] : kMagnitudes[code & 7u];
}

/// Element i of a tensor of e2m1x2.
inline double e2m1_at(const void* data, std::int64_t i) {
  const unsigned pair = static_cast<const std::uint8_t*>(data)[i / 2];
  return e2m1_value((i % 2 ? pair >> 4 : pair) & 15u);
}

/// The value of an e4m3 code; NaN for 0x7f and 0xff.
inline double e4m3_value(std::uint8_t code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  if ((code & 0x7f) == 0x7f) return std::nan("");
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

/// The value of an e8m0 code, 2^(code - 127); NaN for 255.
inline double e8m0_value(std::uint8_t code) {
  return code == 255 ? std::nan("") : std::ldexp(1.0, code - 127);
}

/// `value` rounded to a floating format, to nearest, ties to even, at most ±`largest`; subnormals are kept.
inline double nearest(double value, int mantissa_bits, int least_exponent, double largest) {
  if (value == 0 || std::isnan(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [0.5, 1) * 2^exponent
  const int step = (exponent - 1 > least_exponent ? exponent - 1 : least_exponent) - mantissa_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
  return std::fabs(rounded) > largest ? std::copysign(largest, value) : rounded;
}
inline double nearest_e2m1(double value) { return nearest(value, 1, 0, 6); }
inline double nearest_e4m3(double value) { return nearest(value, 3, -6, 448); }

/// The layout in which block-scaled tensor-core instructions want scales (the 128x4 layout of cuBLAS and of
/// the PTX ISA's tcgen05.mma): tiles of 128 rows and 4 columns, 512 bytes each, row by row of tiles; within a
/// tile element (r, c) is at (r % 32) * 16 + (r / 32) * 4 + c. A tensor [rows, columns] takes
/// swizzled_scales(rows, columns) bytes: the last tile of either direction is padded.
inline std::int64_t swizzled_scales(std::int64_t rows, std::int64_t columns) {
  return (rows + 127) / 128 * ((columns + 3) / 4) * 512;
}
inline std::int64_t swizzled_scale_index(std::int64_t row, std::int64_t column, std::int64_t columns) {
  const std::int64_t tile = row / 128 * ((columns + 3) / 4) + column / 4, r = row % 128;
  return tile * 512 + r % 32 * 16 + r / 32 * 4 + column % 4;
}
/// The row and column at an index; they may lie in the padding.
struct ScalePlace {
  std::int64_t row, column;
};
inline ScalePlace swizzled_scale_place(std::int64_t index, std::int64_t columns) {
  const std::int64_t tiles = (columns + 3) / 4, tile = index / 512, within = index % 512;
  return {tile / tiles * 128 + within / 4 % 4 * 32 + within / 16, tile % tiles * 4 + within % 4};
}

}  // namespace capstone_types
