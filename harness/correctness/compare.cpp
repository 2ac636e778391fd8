#include "harness/correctness/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "harness/correctness/bulk.h"
#include "harness/correctness/dtype_convert.h"

namespace capstone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kLanes = 8;  // independent sums, so that the loop can be vectorised without reassociation
constexpr std::size_t kBlock = 1024;  // elements between two checks for errors
using Lanes = std::array<double, kLanes>;

/// Sums over a range of elements. If a value is not finite, the sums become infinite or NaN, which sends the
/// block to the careful path.
struct Sums {
  alignas(64) Lanes max_abs{}, max_rel{}, squares{}, wrong{};
};

// The tolerance rule: how far a result may be from the expected value. `magnitude`: |expected|.
inline __attribute__((always_inline)) double allowed_error(double magnitude, double scale,
                                                           Tolerance tolerance) {
  return tolerance.atol * scale + tolerance.rtol * magnitude;
}

// Checks one element by the quick rule and adds it to lane l; `wrong` counts the elements that the careful
// rule must check. Every step is a select, so that the compiler can vectorise it.
inline __attribute__((always_inline)) void add(Sums& sums, int l, double got, double expected, double scale,
                                               Tolerance tolerance) {
  const double error = std::fabs(got - expected), magnitude = std::fabs(expected);
  const double bound = allowed_error(magnitude, scale, tolerance);
  const double reference = magnitude > scale ? magnitude : scale;
  const double relative = error / (reference > 0 ? reference : 1.0);
  sums.wrong[l] += (error <= bound && bound < kInfinity) ? 0.0 : 1.0;  // NaN compares false, so it is checked
  sums.max_abs[l] = error > sums.max_abs[l] ? error : sums.max_abs[l];
  sums.max_rel[l] = relative > sums.max_rel[l] ? relative : sums.max_rel[l];
  sums.squares[l] += error * error;
}

CAPSTONE_CLONES
void add_block(Sums& sums, const float* got, const double* expected, const double* scale, std::size_t count,
               Tolerance tolerance) {
  Sums local;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int l = 0; l < kLanes; ++l)
      add(local, l, static_cast<double>(got[i + l]), expected[i + l], scale[i + l], tolerance);
  for (; i < count; ++i) add(local, 0, static_cast<double>(got[i]), expected[i], scale[i], tolerance);
  sums = local;
}

CAPSTONE_CLONES
void add_block_f32(Sums& sums, const float* got, const float* expected, std::size_t count,
                   Tolerance tolerance) {
  Sums local;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const double value = static_cast<double>(expected[i + l]);
      add(local, l, static_cast<double>(got[i + l]), value, std::fabs(value), tolerance);
    }
  for (; i < count; ++i) {
    const double value = static_cast<double>(expected[i]);
    add(local, 0, static_cast<double>(got[i]), value, std::fabs(value), tolerance);
  }
  sums = local;
}

/// The partial result, with the data needed to find the worst element.
struct Tally {
  Comparison result;
  double squares = 0, worst_excess = -1;
  std::int64_t finite = 0;

  void take(const Sums& sums, std::size_t count) {
    for (int l = 0; l < kLanes; ++l) {
      result.max_abs = std::max(result.max_abs, sums.max_abs[l]);
      result.max_rel = std::max(result.max_rel, sums.max_rel[l]);
      squares += sums.squares[l];
    }
    finite += static_cast<std::int64_t>(count);
  }

  /// One element by the full rule.
  void look_at(std::int64_t i, DType type, double got, double expected, double scale, Tolerance tolerance) {
    const double error = std::fabs(got - expected);
    const bool right = is_right(type, got, expected, scale, tolerance);
    if (std::isfinite(error)) {
      const double reference = std::max(std::fabs(expected), scale);
      result.max_abs = std::max(result.max_abs, error);
      result.max_rel = std::max(result.max_rel, error / (reference > 0 ? reference : 1.0));
      squares += error * error;
      ++finite;
    }
    if (right) return;
    if (!std::isfinite(error)) result.max_abs = result.max_rel = kInfinity;
    if (std::isnan(got)) ++result.nans;
    ++result.wrong;
    if (result.first < 0) result.first = i;
    const double bound = allowed_error(std::fabs(expected), scale, tolerance);
    const double excess = std::isfinite(error) ? (bound > 0 ? error / bound : error * 1e300) : kInfinity;
    if (excess > worst_excess) {
      worst_excess = excess;
      result.worst = i;
    }
  }

  Comparison finish(std::size_t total) {
    result.total = static_cast<std::int64_t>(total);
    result.rms = finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0.0;
    result.passed = result.wrong == 0;
    return result;
  }
};

bool anything_odd(const Sums& sums) {
  double wrong = 0, squares = 0;
  for (int l = 0; l < kLanes; ++l) {
    wrong += sums.wrong[l];
    squares += sums.squares[l];
  }
  return wrong > 0 || !std::isfinite(squares);
}

Comparison sizes_differ(std::size_t total) {
  Comparison result;
  result.total = result.wrong = static_cast<std::int64_t>(std::max<std::size_t>(total, 1));
  result.first = result.worst = 0;
  result.max_abs = result.max_rel = kInfinity;
  return result;
}

Comparison compare_integers(DType type, std::span<const std::byte> got, std::span<const double> expected,
                            std::span<const double> scale) {
  Tally tally;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    tally.look_at(at, type, load_as_double(type, got.data(), at), expected[i], scale[i], Tolerance{});
  }
  return tally.finish(expected.size());
}

}  // namespace

bool is_right(DType type, double got, double expected, double scale, Tolerance tolerance) {
  if (!is_float(type)) return got == expected;
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isnan(got)) return false;
  const double bound = allowed_error(std::fabs(expected), scale, tolerance);
  if (std::isfinite(got) && std::isfinite(expected) && std::fabs(got - expected) <= bound) return true;
  if (got == rounded_to(type, expected)) return true;
  // Infinite although the exact value is finite: correct if some value within the tolerance rounds to
  // infinity.
  return std::isinf(got) && std::isfinite(expected) &&
         got == rounded_to(type, expected + std::copysign(bound, expected));
}

Comparison compare(DType type, std::span<const std::byte> got, std::span<const double> expected,
                   std::span<const double> scale, Tolerance tolerance) {
  if (got.size() != bytes_of(type, expected.size()) || scale.size() != expected.size())
    return sizes_differ(expected.size());
  if (!is_float(type)) return compare_integers(type, got, expected, scale);
  Tally tally;
  alignas(64) float values[kBlock];
  for (std::size_t at = 0; at < expected.size(); at += kBlock) {
    const std::size_t count = std::min(kBlock, expected.size() - at);
    load_all(type, got.subspan(bytes_of(type, at), bytes_of(type, count)), std::span<float>(values, count));
    Sums sums;
    add_block(sums, values, expected.data() + at, scale.data() + at, count, tolerance);
    if (!anything_odd(sums)) {
      tally.take(sums, count);
      continue;
    }
    for (std::size_t i = 0; i < count; ++i)
      tally.look_at(static_cast<std::int64_t>(at + i), type, static_cast<double>(values[i]), expected[at + i],
                    scale[at + i], tolerance);
  }
  return tally.finish(expected.size());
}

Comparison compare_f32(std::span<const float> got, std::span<const float> expected, Tolerance tolerance) {
  if (got.size() != expected.size()) return sizes_differ(expected.size());
  Tally tally;
  for (std::size_t at = 0; at < expected.size(); at += kBlock) {
    const std::size_t count = std::min(kBlock, expected.size() - at);
    Sums sums;
    add_block_f32(sums, got.data() + at, expected.data() + at, count, tolerance);
    if (!anything_odd(sums)) {
      tally.take(sums, count);
      continue;
    }
    for (std::size_t i = at; i < at + count; ++i) {
      const double value = static_cast<double>(expected[i]);
      tally.look_at(static_cast<std::int64_t>(i), DType::kF32, static_cast<double>(got[i]), value,
                    std::fabs(value), tolerance);
    }
  }
  return tally.finish(expected.size());
}

}  // namespace capstone
