// c[i, j] = gelu(sum_p a[i, p] * b[p, j] + bias[j]) of bf16 operands, in float64; unrounded.
// gelu(v) = v/2 * (1 + tanh(sqrt(2/pi) * (v + 0.044715 v^3))), the tanh form.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

enum Slot { kA, kB, kBias };

// Elements of c computed together: neighbours in a row share every load of a, and read b along its rows.
constexpr std::int64_t kStrip = 32;

/// bf16 is the upper half of a float.
float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

double gelu(double v) {
  constexpr double kRootOfTwoByPi = 0.79788456080286535588;
  return 0.5 * v * (1 + std::tanh(kRootOfTwoByPi * (v + 0.044715 * v * v * v)));
}

/// The products of (row, first … first+width-1). The sum runs over p in order whatever the width, so an
/// element's value does not depend on which others were asked for with it.
void compute_strip(const std::uint16_t* a_row, const std::uint16_t* b, std::int64_t k, std::int64_t n,
                   std::int64_t first, std::int64_t width, double* sum, double* squares) {
  for (std::int64_t j = 0; j < width; ++j) sum[j] = squares[j] = 0;
  for (std::int64_t p = 0; p < k; ++p) {
    const double left = value_of(a_row[p]);
    const std::uint16_t* b_row = b + p * n + first;
    for (std::int64_t j = 0; j < width; ++j) {
      const double product = left * value_of(b_row[j]);
      sum[j] += product;
      squares[j] += product * product;
    }
  }
}

/// How many of the next indices are neighbours in one row of c.
std::int64_t strip_width(const std::int64_t* indices, std::int64_t available, std::int64_t n) {
  const std::int64_t limit = std::min({available, kStrip, n - indices[0] % n});
  std::int64_t width = 1;
  while (width < limit && indices[width] == indices[0] + width) ++width;
  return width;
}

}  // namespace

/// Scale: how far roundings of the operands move the argument of GELU, whose slope is at most 1.13.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* a = static_cast<const std::uint16_t*>(c->parameters[kA].data);
  const auto* b = static_cast<const std::uint16_t*>(c->parameters[kB].data);
  const auto* bias = static_cast<const std::uint16_t*>(c->parameters[kBias].data);
  const std::int64_t k = c->sizes[1], n = c->sizes[2];
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t width = strip_width(indices + i, count - i, n), first = indices[i] % n;
    double sum[kStrip], squares[kStrip];
    compute_strip(a + indices[i] / n * k, b, k, n, first, width, sum, squares);
    for (std::int64_t j = 0; j < width; ++j) {
      const double offset = value_of(bias[first + j]);
      value[i + j] = gelu(sum[j] + offset);
      scale[i + j] = std::sqrt(squares[j]) + std::fabs(offset);
    }
    i += width;
  }
}
