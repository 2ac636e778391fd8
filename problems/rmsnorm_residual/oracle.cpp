// t = residual + x and y = t / sqrt(mean(t^2) + eps) * w over each row, in float64, unrounded.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

enum Slot { kX, kResidual, kW, kY, kEps };

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

/// Scale: of a sum, the root of the squares of its terms; of y, that as the row is normalised.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const std::int64_t cols = c->sizes[1];
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[kX].data);
  const auto* residual = static_cast<const std::uint16_t*>(c->parameters[kResidual].data);
  const auto* w = static_cast<const std::uint16_t*>(c->parameters[kW].data);
  std::int64_t row = -1;
  double inverse = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double a = value_of(residual[indices[i]]), b = value_of(x[indices[i]]);
    value[i] = a + b;
    scale[i] = std::sqrt(a * a + b * b);
    if (output == kResidual) continue;
    if (indices[i] / cols != row) {
      row = indices[i] / cols;
      double squares = 0;
      for (std::int64_t j = 0; j < cols; ++j) {
        const double sum = value_of(residual[row * cols + j]) + value_of(x[row * cols + j]);
        squares += sum * sum;
      }
      inverse = 1 / std::sqrt(squares / static_cast<double>(cols) + c->parameters[kEps].scalar);
    }
    const double factor = inverse * value_of(w[indices[i] % cols]);
    value[i] *= factor;
    scale[i] *= std::fabs(factor);
  }
}
