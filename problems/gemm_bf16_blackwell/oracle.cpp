// c[i, j] = sum_p a[i, p] * b[j, p] of bf16 operands, in float64; unrounded.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

/// Scale: the root of the sum of squared products, which is what independent roundings of the operands add up
/// to.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* a = static_cast<const std::uint16_t*>(c->parameters[0].data);
  const auto* b = static_cast<const std::uint16_t*>(c->parameters[1].data);
  const std::int64_t k = c->sizes[1], n = c->sizes[2];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t *row = a + indices[i] / n * k, *column = b + indices[i] % n * k;
    double sum = 0, squares = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      const double product = value_of(row[p]) * value_of(column[p]);
      sum += product;
      squares += product * product;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
