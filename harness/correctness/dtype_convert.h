#pragma once
// Conversion between stored elements of every dtype and double or float.
#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/model/dtype.h"

namespace capstone {

/// Element i of a tensor as a double; exact, except for |i64| above 2^53.
double load_as_double(DType type, const std::byte* tensor, std::int64_t i);

/// Stores `value` as element i, rounded once: to nearest, ties to even. Floating-point overflow is as on the
/// device (infinity for f32, f16, bf16, saturation for fp8, fp4 and e8m0). Integers saturate, NaN becomes 0.
/// NaN as e2m1 becomes 6, as on the device; e8m0 has no sign and no zero. The other element of a packed byte
/// stays as it is.
void store_rounded(DType type, std::byte* tensor, std::int64_t i, double value);

/// `value` after rounding to the type.
double rounded_to(DType type, double value);

/// A whole tensor; in.size() == bytes_of(type, out.size()).
void load_all(DType type, std::span<const std::byte> in, std::span<double> out);
void load_all(DType type, std::span<const std::byte> in, std::span<float> out);

/// A whole tensor; out.size() == bytes_of(type, in.size()).
void store_all(DType type, std::span<const double> in, std::span<std::byte> out);
void store_all(DType type, std::span<const float> in, std::span<std::byte> out);

}  // namespace capstone
