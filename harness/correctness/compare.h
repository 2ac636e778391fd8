#pragma once
// Gate one's comparison.
#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/model/dtype.h"
#include "harness/model/problem.h"

namespace capstone {

struct Comparison {
  bool passed = false;
  std::int64_t wrong = 0, total = 0;    ///< number of elements
  std::int64_t first = -1, worst = -1;  ///< flat indices of wrong elements; -1: none
  double max_abs = 0;     ///< largest |got - expected|; infinite if only one of the two is finite
  double max_rel = 0;     ///< largest |got - expected| / max(|expected|, scale)
  double rms = 0;         ///< root mean square of got - expected over finite pairs
  std::int64_t nans = 0;  ///< NaN in `got` where a number was expected
};

/// Compares one output with its expected values.
///
/// An element is correct if |got - expected| <= atol*scale + rtol*|expected|, or if it is the expected value
/// rounded to its type (this decides infinities, NaN, and saturation of fp8 and fp4). NaN instead of a number
/// fails. Infinities must agree; a result may also be infinite if a value within the tolerance rounds to
/// infinity. Integers must be equal.
///
/// @param got       the output's bytes, bytes_of(type, n)
/// @param expected  [n] exact, unrounded
/// @param scale     [n] the oracle's condition of each element
///
/// If the lengths do not agree, the result is a failure with wrong == total == n.
Comparison compare(DType type, std::span<const std::byte> got, std::span<const double> expected,
                   std::span<const double> scale, Tolerance tolerance);

/// The same with a trusted float result as the expected value, scale = |expected|.
Comparison compare_f32(std::span<const float> got, std::span<const float> expected, Tolerance tolerance);

/// Whether one element is correct by the rule of compare().
bool is_right(DType type, double got, double expected, double scale, Tolerance tolerance);

}  // namespace capstone
