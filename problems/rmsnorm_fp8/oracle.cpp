// y = x / sqrt(mean(x^2) + eps) * w over each row; for each group of 128 columns scale = max(|y|, 1e-10) /
// 448 and y / scale, in float64, unrounded.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

enum Slot { kX, kW, kCodes, kScales, kEps };
constexpr std::int64_t kGroup = 128;
constexpr double kLargest = 448;  // of e4m3
constexpr int kMantissa = 3, kLeastExponent = -6;

/// bf16 is the upper half of a float.
double value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// Half the distance of the e4m3 numbers around a value; below 2^-6 they lie as far apart as just above.
double half_step(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [0.5, 1) * 2^exponent
  if (value == 0) exponent = kLeastExponent;
  return std::ldexp(1.0, std::max(exponent - 1, kLeastExponent) - kMantissa - 1);
}

/// One row of y, and the scales of its groups.
struct Row {
  std::int64_t index = -1;
  std::vector<double> y, scale;
};

void compute_row(const CapstoneCase* c, std::int64_t index, std::int64_t cols, Row& row) {
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[kX].data) + index * cols;
  const auto* w = static_cast<const std::uint16_t*>(c->parameters[kW].data);
  row.index = index;
  row.y.resize(static_cast<std::size_t>(cols));
  row.scale.assign(static_cast<std::size_t>(cols / kGroup), 1e-10 / kLargest);
  double squares = 0;
  for (std::int64_t j = 0; j < cols; ++j) squares += value_of(x[j]) * value_of(x[j]);
  const double inverse = 1 / std::sqrt(squares / static_cast<double>(cols) + c->parameters[kEps].scalar);
  for (std::int64_t j = 0; j < cols; ++j) {
    const double y = value_of(x[j]) * inverse * value_of(w[j]);
    double& scale = row.scale[static_cast<std::size_t>(j / kGroup)];
    row.y[static_cast<std::size_t>(j)] = y;
    scale = std::max(scale, std::fabs(y) / kLargest);
  }
}

}  // namespace

/// Scale of a code: half a step of e4m3 at its value, so that the nearest code is within one scale, and no
/// other. Scale of a group's scale: 0; what the tolerance adds to it follows the value.
extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices,
                                std::int64_t count, double* value, double* scale) {
  const std::int64_t cols = c->sizes[1], wide = output == kCodes ? cols : cols / kGroup;
  Row row;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t r = indices[i] / wide, j = indices[i] % wide;
    if (r != row.index) compute_row(c, r, cols, row);
    if (output == kScales) {
      value[i] = row.scale[static_cast<std::size_t>(j)];
      scale[i] = 0;
      continue;
    }
    value[i] = row.y[static_cast<std::size_t>(j)] / row.scale[static_cast<std::size_t>(j / kGroup)];
    scale[i] = half_step(value[i]);
  }
}
