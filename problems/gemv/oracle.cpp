// y[i] = sum_j a[i, j] * x[j] of bf16 operands, in float64; unrounded.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

/// bf16 is the upper half of a float.
float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

/// Scale: the root of the sum of squared products, which is what independent roundings of the operands add up to.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* a = static_cast<const std::uint16_t*>(c->parameters[0].data);
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[1].data);
  const std::int64_t k = c->sizes[1];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t* row = a + indices[i] * k;
    double sum = 0, squares = 0;
    for (std::int64_t j = 0; j < k; ++j) {
      const double product = static_cast<double>(value_of(row[j])) * value_of(x[j]);
      sum += product;
      squares += product * product;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
