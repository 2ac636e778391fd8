// y = x / sqrt(mean(x^2) + eps) * w over each row, in float64, unrounded.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

enum Slot { kX, kW, kY, kEps };

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

/// Scale: the value itself. A sum of squares does not cancel, so only the roundings of the element count.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t cols = c->sizes[1];
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[kX].data);
  const auto* w = static_cast<const std::uint16_t*>(c->parameters[kW].data);
  std::int64_t row = -1;
  double inverse = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (indices[i] / cols != row) {
      row = indices[i] / cols;
      double squares = 0;
      for (std::int64_t j = 0; j < cols; ++j)
        squares += value_of(x[row * cols + j]) * value_of(x[row * cols + j]);
      inverse = 1 / std::sqrt(squares / static_cast<double>(cols) + c->parameters[kEps].scalar);
    }
    value[i] = value_of(x[indices[i]]) * inverse * value_of(w[indices[i] % cols]);
    scale[i] = std::fabs(value[i]);
  }
}
