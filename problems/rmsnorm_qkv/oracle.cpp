// y = a w^T with a = x / sqrt(mean(x^2) + eps) * g over each row of x, in float64, unrounded.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

enum Slot { kX, kG, kW, kY, kEps };

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

/// Scale: the root of the sum of the squared products, which is what roundings of the normalised row add up
/// to.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t k = c->sizes[1], n = c->sizes[2];
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[kX].data);
  const auto* g = static_cast<const std::uint16_t*>(c->parameters[kG].data);
  const auto* w = static_cast<const std::uint16_t*>(c->parameters[kW].data);
  std::int64_t row = -1;
  std::vector<double> a(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < count; ++i) {
    if (indices[i] / n != row) {
      row = indices[i] / n;
      double squares = 0;
      for (std::int64_t j = 0; j < k; ++j) squares += value_of(x[row * k + j]) * value_of(x[row * k + j]);
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(k) + c->parameters[kEps].scalar);
      for (std::int64_t j = 0; j < k; ++j)
        a[static_cast<std::size_t>(j)] = value_of(x[row * k + j]) * inverse * value_of(g[j]);
    }
    const std::uint16_t* weights = w + indices[i] % n * k;
    double sum = 0, squares = 0;
    for (std::int64_t j = 0; j < k; ++j) {
      const double term = a[static_cast<std::size_t>(j)] * value_of(weights[j]);
      sum += term;
      squares += term * term;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
