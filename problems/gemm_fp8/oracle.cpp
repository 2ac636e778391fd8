// c[i, j] = sa * sb * sum_p a[i, p] * b[j, p] of e4m3 operands and two fp32 scales, in float64; unrounded.
#include "problems/oracle.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

/// e4m3: a sign, four bits of exponent with bias 7, three of mantissa; no infinities, one NaN of either sign.
std::array<double, 256> values_of_codes() {
  std::array<double, 256> values{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    double value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    if (exponent == 15 && mantissa == 7) value = std::numeric_limits<double>::quiet_NaN();
    values[static_cast<std::size_t>(code)] = code & 128 ? -value : value;
  }
  return values;
}

const std::array<double, 256> kValues = values_of_codes();

}  // namespace

/// Scale: the root of the sum of squared products, which is what independent roundings of the operands, and
/// independent losses of a sum, add up to.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* a = static_cast<const std::uint8_t*>(c->parameters[0].data);
  const auto* b = static_cast<const std::uint8_t*>(c->parameters[2].data);
  const double factor = static_cast<double>(*static_cast<const float*>(c->parameters[1].data)) *
                        *static_cast<const float*>(c->parameters[3].data);
  const std::int64_t k = c->sizes[1], n = c->sizes[2];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t *row = a + indices[i] / n * k, *column = b + indices[i] % n * k;
    double sum = 0, squares = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      const double product = kValues[row[p]] * kValues[column[p]];
      sum += product;
      squares += product * product;
    }
    value[i] = sum * factor;
    scale[i] = std::sqrt(squares) * std::fabs(factor);
  }
}
