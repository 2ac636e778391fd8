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
  std::int64_t wrong = 0, total = 0;    ///< elements
  std::int64_t first = -1, worst = -1;  ///< flat indices among the wrong ones; -1: none
  double max_abs = 0;     ///< largest |got - expected|; infinite when one side alone is not finite
  double max_rel = 0;     ///< largest |got - expected| / max(|expected|, scale)
  double rms = 0;         ///< root mean square of got - expected over pairs that are finite
  std::int64_t nans = 0;  ///< NaN in `got` where none was expected
};

/// Compares one output with its expected values.
///
/// An element is right if |got - expected| <= atol*scale + rtol*|expected|, or if it is the expected value
/// rounded to its type (which settles infinities, NaN, and saturation of fp8). NaN against a number fails,
/// and infinities must agree, where a result that may round to infinity within the tolerance may be infinite.
/// Integers are exact.
///
/// @param got       the output's bytes, size_of(type) * n
/// @param expected  [n] exact, unrounded
/// @param scale     [n] the oracle's condition of each element
/// Sizes that do not agree are a failure with wrong == total == n.
Comparison compare(DType type, std::span<const std::byte> got, std::span<const double> expected,
                   std::span<const double> scale, Tolerance tolerance);

/// The same against a trusted float result, scale = |expected|.
Comparison compare_f32(std::span<const float> got, std::span<const float> expected, Tolerance tolerance);

/// Whether one element is right: the rule of compare().
bool is_right(DType type, double got, double expected, double scale, Tolerance tolerance);

}  // namespace capstone
