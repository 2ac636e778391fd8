// h[i, j] = g / (1 + exp(-g)) * u with g = sum_p x[i, p] wg[p, j] and u = sum_p x[i, p] wu[p, j] of bf16
// operands, in float64; unrounded.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

enum Slot { kX, kGate, kUp };

// Elements of h computed together: neighbours in a row share every load of x, and read weights along rows.
constexpr std::int64_t kStrip = 32;

/// bf16 is the upper half of a float.
float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

struct Strip {
  double sum[kStrip] = {}, squares[kStrip] = {};
};

/// The products of (row, first … first+width-1). The sum runs over p in order whatever the width, so an
/// element's value does not depend on which others were asked for with it.
Strip product(const std::uint16_t* x_row, const std::uint16_t* w, std::int64_t k, std::int64_t n,
              std::int64_t first, std::int64_t width) {
  Strip strip;
  for (std::int64_t p = 0; p < k; ++p) {
    const double left = value_of(x_row[p]);
    const std::uint16_t* w_row = w + p * n + first;
    for (std::int64_t j = 0; j < width; ++j) {
      const double each = left * value_of(w_row[j]);
      strip.sum[j] += each;
      strip.squares[j] += each * each;
    }
  }
  return strip;
}

/// How many of the next indices are neighbours in one row of h.
std::int64_t strip_width(const std::int64_t* indices, std::int64_t available, std::int64_t n) {
  const std::int64_t limit = std::min({available, kStrip, n - indices[0] % n});
  std::int64_t width = 1;
  while (width < limit && indices[width] == indices[0] + width) ++width;
  return width;
}

}  // namespace

/// Scale: how far roundings of the operands move gate and up, and these the result. And a tenth of |g u|,
/// since the sigmoid that it is multiplied with may be approximate, and is zero in fp32 where exp(-g) is
/// infinite.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* x = static_cast<const std::uint16_t*>(c->parameters[kX].data);
  const auto* gates = static_cast<const std::uint16_t*>(c->parameters[kGate].data);
  const auto* ups = static_cast<const std::uint16_t*>(c->parameters[kUp].data);
  const std::int64_t k = c->sizes[1], n = c->sizes[2];
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t width = strip_width(indices + i, count - i, n), first = indices[i] % n;
    const std::uint16_t* row = x + indices[i] / n * k;
    const Strip gate = product(row, gates, k, n, first, width), up = product(row, ups, k, n, first, width);
    for (std::int64_t j = 0; j < width; ++j) {
      const double g = gate.sum[j], u = up.sum[j], sigmoid = 1 / (1 + std::exp(-g));
      const double slope = sigmoid * (1 + g * (1 - sigmoid));
      value[i + j] = g * sigmoid * u;
      scale[i + j] = std::fabs(slope * u) * std::sqrt(gate.squares[j]) +
                     std::fabs(g * sigmoid) * std::sqrt(up.squares[j]) + 0.1 * std::fabs(g * u);
    }
    i += width;
  }
}
