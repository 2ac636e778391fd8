// y[r, j] = g / (1 + exp(-g)) * u with g = x[r, j] and u = x[r, cols + j], in float64, unrounded.
#include "problems/oracle.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

enum Slot { kX, kY };

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace

/// Scale: |g u|, of which the sigmoid takes a part, where the gate is below zero; else the value itself.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::int64_t cols = c->sizes[1];
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[kX].data);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices[i] / cols, j = indices[i] % cols;
    const double gate = value_of(x[row * 2 * cols + j]), up = value_of(x[row * 2 * cols + cols + j]);
    value[i] = gate / (1 + std::exp(-gate)) * up;
    scale[i] = std::fabs(gate * up);
  }
}
