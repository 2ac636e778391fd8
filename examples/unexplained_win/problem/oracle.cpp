// c[i, j] = sum_p a[i, p] * b[p, j], in float64.
#include "problems/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

// Elements of c computed together: neighbours in a row share every load of a, and read b along its rows.
constexpr std::int64_t kStrip = 32;

/// The elements (row, first … first+width-1). The sum runs over p in order whatever the width, so an
/// element's value does not depend on which others were asked for with it.
void compute_strip(const float* a_row, const float* b, std::int64_t k, std::int64_t n, std::int64_t first,
                   std::int64_t width, double* value, double* scale) {
  double sum[kStrip] = {}, squares[kStrip] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    const double left = a_row[p];
    const float* b_row = b + p * n + first;
    for (std::int64_t j = 0; j < width; ++j) {
      const double product = left * b_row[j];
      sum[j] += product;
      squares[j] += product * product;
    }
  }
  for (std::int64_t j = 0; j < width; ++j) {
    value[j] = sum[j];
    scale[j] = std::sqrt(squares[j]);
  }
}

/// How many of the next indices are neighbours in one row of c.
std::int64_t strip_width(const std::int64_t* indices, std::int64_t available, std::int64_t n) {
  const std::int64_t limit = std::min({available, kStrip, n - indices[0] % n});
  std::int64_t width = 1;
  while (width < limit && indices[width] == indices[0] + width) ++width;
  return width;
}

}  // namespace

/// Scale: the root of the sum of squared products. Errors of rounding the *inputs* (TF32, half) are
/// independent and add up to just this, whatever k is, while sum |a||b| outgrows them by sqrt(k) and would
/// let them hide in long sums.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* a = static_cast<const float*>(c->parameters[0].data);
  const float* b = static_cast<const float*>(c->parameters[1].data);
  const std::int64_t k = c->sizes[1], n = c->sizes[2];
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t width = strip_width(indices + i, count - i, n);
    compute_strip(a + indices[i] / n * k, b, k, n, indices[i] % n, width, value + i, scale + i);
    i += width;
  }
}
