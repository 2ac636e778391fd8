// c[g, i, j] = sum_p a[g, i, p] * sfa[g, i, p / 128] * b[g, j, p] * sfb[g, j / 128, p / 128] of e4m3 operands and
// fp32 scales, in float64, unrounded. Rows at and beyond masked_m[g] are zero.
#include "problems/oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

constexpr std::int64_t kBlock = 128;

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

/// Scale: the root of the sum of squared products, which is what independent roundings of the operands add up
/// to.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* a = static_cast<const std::uint8_t*>(c->parameters[0].data);
  const auto* sfa = static_cast<const float*>(c->parameters[1].data);
  const auto* b = static_cast<const std::uint8_t*>(c->parameters[2].data);
  const auto* sfb = static_cast<const float*>(c->parameters[3].data);
  const auto* masked_m = static_cast<const std::int32_t*>(c->parameters[4].data);
  const std::int64_t max_m = c->sizes[1], k = c->sizes[2], n = c->sizes[3];
  const std::int64_t blocks = (k + kBlock - 1) / kBlock, b_blocks = (n + kBlock - 1) / kBlock;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / n, column = indices[i] % n;
    const std::int64_t group = row / max_m;
    if (row % max_m >= masked_m[group]) {
      value[i] = 0;
      scale[i] = 1e-30;  // exactly zero, not almost
      continue;
    }
    const std::uint8_t *const row_of_a = a + row * k, *const row_of_b = b + (group * n + column) * k;
    const float* const scales_of_b = sfb + (group * b_blocks + column / kBlock) * blocks;
    double sum = 0, squares = 0;
    for (std::int64_t block = 0; block < blocks; ++block) {
      double part = 0, part_squares = 0;
      for (std::int64_t p = block * kBlock; p < std::min(k, (block + 1) * kBlock); ++p) {
        const double product = kValues[row_of_a[p]] * kValues[row_of_b[p]];
        part += product;
        part_squares += product * product;
      }
      const double factor = static_cast<double>(sfa[row * blocks + block]) * scales_of_b[block];
      sum += part * factor;
      squares += part_squares * factor * factor;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
