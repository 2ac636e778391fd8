// y[i, j] = exp(x[i, j] - max_i) / sum_k exp(x[i, k] - max_i), in float64.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "problems/oracle.h"

namespace {

struct Row {
  std::int64_t index = -1;
  double maximum = 0, sum = 0;
};

Row compute_row(const float* x, std::int64_t index, std::int64_t cols) {
  const float* row = x + index * cols;
  const double maximum = *std::max_element(row, row + cols);
  double sum = 0;
  for (std::int64_t j = 0; j < cols; ++j) sum += std::exp(row[j] - maximum);
  return {index, maximum, sum};
}

}  // namespace

/// Scale: exp turns an absolute error of its argument into a relative one of y, and arguments carry rounding errors in
/// proportion to |x| and |max|: y * (1 + |x| + |max|). The tiny constant admits flushing of denormals to zero.
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  constexpr double kFlushed = 1.0e-30;
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const std::int64_t cols = c->sizes[1];
  Row row;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t r = indices[i] / cols;
    if (r != row.index) row = compute_row(x, r, cols);
    const double v = x[indices[i]];
    value[i] = std::exp(v - row.maximum) / row.sum;
    scale[i] = value[i] * (1.0 + std::fabs(v) + std::fabs(row.maximum)) + kFlushed;
  }
}
