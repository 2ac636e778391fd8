// y[i, j] = sum_p x[i, p] * code[j, p] * scale[j, p / 128], in float64; unrounded.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr std::int64_t kGroup = 128;

/// bf16 is the upper half of a float.
float value_of(std::uint16_t bits) {
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
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[0].data);
  const void* w = c->parameters[1].data;
  const auto* scales = static_cast<const std::uint16_t*>(c->parameters[2].data);
  const std::int64_t k = c->sizes[1], n = c->sizes[2];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / n, column = indices[i] % n;
    const std::uint16_t* left = x + row * k;
    double sum = 0, squares = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      const double weight = capstone_types::int4_at(w, column * k + p) *
                            static_cast<double>(value_of(scales[column * (k / kGroup) + p / kGroup]));
      const double product = weight * value_of(left[p]);
      sum += product;
      squares += product * product;
    }
    value[i] = sum;
    scale[i] = std::sqrt(squares);
  }
}
