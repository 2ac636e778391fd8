// logits[i, j] = sk[j] * sum_h w[i, h] * max(0, sum_d q[i, h, d] * k[j, d]) of e4m3 operands and fp32 weights
// and scales where starts[i] <= j < ends[i], minus infinity elsewhere; in float64, unrounded.
#include "problems/oracle.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

constexpr std::int64_t kHeads = 64, kDim = 128;

std::array<double, 256> values_of_codes() {
  std::array<double, 256> values{};
  for (std::size_t code = 0; code < values.size(); ++code)
    values[code] = capstone_types::e4m3_value(static_cast<std::uint8_t>(code));
  return values;
}

const std::array<double, 256> kValues = values_of_codes();

}  // namespace

/// Scale: |sk| sqrt(sum_h w^2 sum_d (q k)^2), which is what independent roundings of the operands add up to
/// where no product of a head is cut off at 0; 0 of an infinite result.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* q = static_cast<const std::uint8_t*>(c->parameters[0].data);
  const auto* k = static_cast<const std::uint8_t*>(c->parameters[1].data);
  const auto* sk = static_cast<const float*>(c->parameters[2].data);
  const auto* w = static_cast<const float*>(c->parameters[3].data);
  const auto* starts = static_cast<const std::int32_t*>(c->parameters[4].data);
  const auto* ends = static_cast<const std::int32_t*>(c->parameters[5].data);
  const std::int64_t n = c->sizes[1];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / n, key = indices[i] % n;
    if (key < starts[row] || key >= ends[row]) {
      value[i] = -std::numeric_limits<double>::infinity();
      scale[i] = 0;
      continue;
    }
    double sum = 0, squares = 0;
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const std::uint8_t *const a = q + (row * kHeads + head) * kDim, *const b = k + key * kDim;
      double product = 0, product_squares = 0;
      for (std::int64_t d = 0; d < kDim; ++d) {
        const double term = kValues[a[d]] * kValues[b[d]];
        product += term;
        product_squares += term * term;
      }
      const double weight = w[row * kHeads + head];
      if (!(product < 0)) sum += weight * product;  // NaN stays
      squares += weight * weight * product_squares;
    }
    value[i] = sk[key] * sum;
    scale[i] = std::fabs(sk[key]) * std::sqrt(squares);
  }
}
